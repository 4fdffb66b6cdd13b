// Package dispatch sends attempts: River's workers take queue entries, lease the attempt, call the provider and report
// what came to internal/jobs. It decides no state.
//
// It imports internal/jobs, internal/queue, internal/store and providers, never graph.
package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
)

// queueName is the one queue of attempts.
const queueName = "attempts"

// entryArgs is a queue entry: the attempt's id and nothing of its content.
type entryArgs struct {
	AttemptID string `json:"attempt_id"`
}

// Kind names the entries in River's tables.
func (entryArgs) Kind() string { return "attempt" }

// QueueOptions of the queue. Zero values mean the defaults in brackets.
type QueueOptions struct {
	Workers int          // attempts worked on at once by this process [64]
	Logger  *slog.Logger // [slog.Default()]
}

// Queue is River's queue of attempts, and which of them this process works on. It is safe for concurrent use.
type Queue struct {
	client  *queue.Client
	work    *entryWorker
	workers int
	log     *slog.Logger

	life context.Context //nolint:containedctx // of what goes on beside the caller
	end  context.CancelFunc

	mu      sync.Mutex
	running map[string]*worker // by attempt
}

// worker is what stops one attempt's request.
type worker struct{ cancel context.CancelCauseFunc }

// NewQueue returns a queue that takes entries as soon as queue.Open gave it a client; they are worked on after a
// Dispatcher started.
func NewQueue(o QueueOptions) *Queue {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Workers == 0 {
		o.Workers = 64
	}
	q := &Queue{work: &entryWorker{}, workers: o.Workers, log: o.Logger, running: map[string]*worker{}}
	q.life, q.end = context.WithCancel(context.Background())
	return q
}

// Register adds the worker of attempts.
func (q *Queue) Register(w *river.Workers) (string, river.QueueConfig, error) {
	if err := river.AddWorkerSafely(w, q.work); err != nil {
		return "", river.QueueConfig{}, fmt.Errorf("dispatch: %w", err)
	}
	return queueName, river.QueueConfig{MaxWorkers: q.workers}, nil
}

// Use takes the client that entries are added to and worked on through.
func (q *Queue) Use(c *queue.Client) { q.client = c }

// Enqueue adds an entry inside the transaction and returns its id.
func (q *Queue) Enqueue(ctx context.Context, tx *store.Tx, attemptID string, due time.Time) (int64, error) {
	// One try: what an attempt may do next is decided by internal/jobs, never by the queue.
	opts := &river.InsertOpts{Queue: queueName, MaxAttempts: 1}
	if due.After(time.Now()) {
		opts.ScheduledAt = due
	}
	res, err := q.client.InsertTx(ctx, tx.SQL, entryArgs{AttemptID: attemptID}, opts)
	if err != nil {
		return 0, fmt.Errorf("dispatch: enqueue: %w", err)
	}
	if !opts.ScheduledAt.IsZero() {
		id := res.Job.ID
		tx.AfterCommit(func() { //nolint:contextcheck // the caller is gone when the entry is due
			time.AfterFunc(time.Until(due), func() { q.hurry(id) })
		})
	}
	return res.Job.ID, nil
}

// hurry makes a scheduled entry available when it is due. River's own scheduler, which runs on the leader alone and every
// five seconds, stands behind it for when this process dies; should both do it, the attempt's lease lets one through.
func (q *Queue) hurry(entry int64) {
	ctx, cancel := context.WithTimeout(q.life, 5*time.Second)
	defer cancel()
	if _, err := q.client.JobRetry(ctx, entry); err != nil {
		q.log.DebugContext(ctx, "hurry", "entry", entry, "error", err)
	}
}

// Alive returns which of the entries will still be worked on, or were taken by a worker less than grace ago.
func (q *Queue) Alive(ctx context.Context, entries []int64, grace time.Duration) (map[int64]bool, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	res, err := q.client.JobList(ctx, river.NewJobListParams().IDs(entries...).First(len(entries)))
	if err != nil {
		return nil, fmt.Errorf("dispatch: list entries: %w", err)
	}
	alive := make(map[int64]bool, len(res.Jobs))
	for _, j := range res.Jobs {
		switch j.State {
		case rivertype.JobStateAvailable, rivertype.JobStateScheduled, rivertype.JobStateRetryable, rivertype.JobStatePending:
			alive[j.ID] = true
		case rivertype.JobStateRunning:
			alive[j.ID] = j.AttemptedAt != nil && time.Since(*j.AttemptedAt) < grace
		case rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded:
		}
	}
	return alive, nil
}

// Stop tells the worker of an attempt, if it is in this process, that nothing can come of it any more. Workers elsewhere
// find out when they renew their lease.
func (q *Queue) Stop(attemptID string) {
	q.mu.Lock()
	w := q.running[attemptID]
	q.mu.Unlock()
	if w != nil {
		w.cancel(errSettled)
	}
}

func (q *Queue) register(attemptID string, cancel context.CancelCauseFunc) (unregister func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &worker{cancel}
	q.running[attemptID] = w
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.running[attemptID] == w { // a stalled worker must not hide the one that took over
			delete(q.running, attemptID)
		}
	}
}

// close ends what goes on beside callers. Entries can still be added; River's scheduler makes them available.
func (q *Queue) close() { q.end() }
