// Package quota counts what each owner uses of the gateway: operations in a minute, and open sockets and event streams.
//
// Of this module it imports the viewer alone.
package quota

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"time"

	"github.com/docket-gateway/docket/internal/viewer"
)

// Limits of one owner. Zero values mean that there is none.
type Limits struct {
	PerMinute int // operations, see Burst
	Burst     int // operations at once, after a pause; at least 1 with PerMinute
	Sockets   int // open at once, in this process
}

// rate is a bucket for each key, which fills evenly. take returns 0, or how long until the key's next one.
type rate interface {
	take(ctx context.Context, key string) (wait time.Duration, err error)
}

// Quota counts. It is safe for concurrent use.
type Quota struct {
	limits Limits
	rate   rate // nil: no limit
	log    *slog.Logger

	mu   sync.Mutex
	open map[string]int
}

// New returns a quota. Operations are counted in PostgreSQL, for all processes on it, or, with a nil db, in this process.
func New(l Limits, db *sql.DB, log *slog.Logger) (*Quota, error) {
	q := &Quota{limits: l, log: log, open: map[string]int{}}
	if l.PerMinute <= 0 {
		return q, nil
	}
	if db != nil {
		q.rate = newShared(db, l)
		return q, nil
	}
	var err error
	q.rate, err = newLocal(l)
	return q, err
}

// Take counts one operation of the context's viewer. It returns 0 if it may run, else how long until one may. If the database
// does not say, it may: whatever the operation needs of the database will say so.
func (q *Quota) Take(ctx context.Context) time.Duration {
	v, ok := viewer.FromContext(ctx)
	if q.rate == nil || !ok {
		return 0
	}
	wait, err := q.rate.take(ctx, v.OwnerID())
	if err != nil {
		if ctx.Err() == nil {
			q.log.WarnContext(ctx, "a request was not counted", "error", err)
		}
		return 0
	}
	return wait
}

// Enter counts a socket or event stream of the context's viewer until leave is called. ok is false, and leave nil, if the
// owner has too many.
func (q *Quota) Enter(ctx context.Context) (leave func(), ok bool) {
	v, known := viewer.FromContext(ctx)
	if q.limits.Sockets <= 0 || !known {
		return func() {}, true
	}
	id := v.OwnerID()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[id] >= q.limits.Sockets {
		return nil, false
	}
	q.open[id]++
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.open[id]--; q.open[id] == 0 {
			delete(q.open, id)
		}
	}), true
}
