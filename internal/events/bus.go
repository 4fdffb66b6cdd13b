package events

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	channel = "docket_jobs"
	// maxPayload keeps a notice below PostgreSQL's limit of 8000 bytes.
	maxPayload = 7900
	// maxPending bounds what waits while the database is away; what is dropped is found by the poll.
	maxPending = 10_000
	// coalesce is how long changes are gathered before one notice tells of all of them.
	coalesce = 5 * time.Millisecond

	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// Publisher sends statements: a pgx pool or connection.
type Publisher interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Bus carries the notices of one hub to the hubs of all processes on one PostgreSQL database, by LISTEN and NOTIFY. It
// notifies in a statement of its own: in the writing transaction NOTIFY would take a lock of the whole database.
type Bus struct {
	hub     *Hub
	pub     Publisher
	connect func(context.Context) (*pgx.Conn, error)
	log     *slog.Logger
	origin  string // marks our own notices: this process was woken already

	mu      sync.Mutex
	pending map[string]struct{}
	filled  chan struct{}

	listening chan struct{} // one signal for each time that LISTEN took hold
}

// NewBus connects hub. connect must give a direct connection: a transaction pooler breaks LISTEN. A nil logger is the
// default one.
func NewBus(hub *Hub, pub Publisher, connect func(context.Context) (*pgx.Conn, error), log *slog.Logger) *Bus {
	if log == nil {
		log = slog.Default()
	}
	return &Bus{
		hub: hub, pub: pub, connect: connect, log: log, origin: rand.Text(),
		pending: map[string]struct{}{}, filled: make(chan struct{}, 1), listening: make(chan struct{}, 1),
	}
}

// Run publishes and listens until ctx ends, through any loss of connection.
func (b *Bus) Run(ctx context.Context) {
	var wg sync.WaitGroup
	b.hub.setForward(b.add)
	defer b.hub.setForward(nil)
	wg.Go(func() { b.publish(ctx) })
	wg.Go(func() { b.listen(ctx) })
	wg.Wait()
}

func (b *Bus) add(jobID string) {
	b.mu.Lock()
	if len(b.pending) < maxPending {
		b.pending[jobID] = struct{}{}
	}
	b.mu.Unlock()
	signal(b.filled)
}

func (b *Bus) publish(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.filled:
		}
		if !wait(ctx, coalesce) {
			return
		}
		b.mu.Lock()
		ids := b.pending
		b.pending = map[string]struct{}{}
		b.mu.Unlock()
		for _, payload := range payloads(b.origin, ids) {
			if _, err := b.pub.Exec(ctx, "SELECT pg_notify($1, $2)", channel, payload); err != nil {
				if ctx.Err() == nil {
					b.log.WarnContext(ctx, "job notices were lost; other processes find the changes by polling", "error", err)
				}
				break
			}
		}
	}
}

// payloads packs the ids into as few notices as fit: the origin, then ids, each after a comma.
func payloads(origin string, ids map[string]struct{}) []string {
	var all []string
	var sb strings.Builder
	for id := range ids {
		if sb.Len() > 0 && sb.Len()+1+len(id) > maxPayload {
			all = append(all, sb.String())
			sb.Reset()
		}
		if sb.Len() == 0 {
			sb.WriteString(origin)
		}
		sb.WriteByte(',')
		sb.WriteString(id)
	}
	if sb.Len() > 0 {
		all = append(all, sb.String())
	}
	return all
}

func (b *Bus) listen(ctx context.Context) {
	backoff := firstBackoff
	for ctx.Err() == nil {
		err := b.listenOnce(ctx, func() { backoff = firstBackoff })
		if ctx.Err() != nil {
			return
		}
		b.log.WarnContext(ctx, "the connection for job notices was lost", "error", err, "retry_in", backoff)
		wait(ctx, backoff)
		backoff = min(2*backoff, lastBackoff)
	}
}

func (b *Bus) listenOnce(ctx context.Context, connected func()) error {
	conn, err := b.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	connected()
	// Whatever happened before LISTEN took hold was not heard.
	b.hub.lookNow()
	signal(b.listening)
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("wait for a notice: %w", err)
		}
		if n == nil {
			return errors.New("no notice and no error")
		}
		origin, ids, _ := strings.Cut(n.Payload, ",")
		if origin == b.origin {
			continue
		}
		for id := range strings.SplitSeq(ids, ",") {
			b.hub.wake(id)
		}
	}
}

// wait returns false if ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
