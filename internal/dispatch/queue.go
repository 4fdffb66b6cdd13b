// Package dispatch sends attempts: River's workers take queue entries, lease the attempt, call the provider and report
// what came to internal/jobs. It decides no state.
//
// # One queue for each provider
//
// An attempt waits for a free place at its provider as an entry of that provider's own queue, whose workers are
// max_concurrency in number. So it holds nothing while it waits, neither a lease nor a worker; any process with a free
// place takes it; and a provider that is slow or full holds up nobody else. The place is given back when the attempt is
// settled or UNKNOWN, not when the worker stops to linger. (One queue for all, from which attempts without a place go
// back for a while, would write each of them to the database again and again, and those behind them would wait for it.)
//
// Providers come and go, and processes with different configurations work on one database while a new one is rolled out.
// Whoever adds an attempt puts it into its provider's queue, without regard to whether it knows the provider itself: another
// process may. So there is a queue for the rest, which every process works on. An attempt goes there only when no process
// seems to serve its provider's queue any more (internal/jobs' sweep sees to it); from there a process that knows the
// provider moves it back to the provider's queue, and any other refuses it.
//
// It imports internal/jobs, internal/queue, internal/store and providers, never graph.
package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/providers"
)

const (
	// restQueue is for attempts whose provider's queue nobody may be working on.
	restQueue = "attempts"
	// restWorkers is how many of them a process works on at once. Each is over in no time: no request is sent from there.
	restWorkers = 4
)

// queueOf names a provider's queue, the same in every process. River allows letters and digits with single separators
// and 64 bytes; a provider's name has more freedom, so the hash tells those apart that look alike without it.
func queueOf(provider string) string {
	words := strings.FieldsFunc(provider, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	readable := strings.Join(words, "-")
	sum := sha256.Sum256([]byte(provider))
	return restQueue + "-" + strings.TrimSuffix(readable[:min(len(readable), 40)], "-") + "-" + hex.EncodeToString(sum[:4])
}

// entryArgs is a queue entry: the attempt's id and nothing of its content.
type entryArgs struct {
	AttemptID string `json:"attempt_id"`
}

// Kind names the entries in River's tables.
func (entryArgs) Kind() string { return "attempt" }

// QueueOptions of the queue. Zero values mean the defaults in brackets.
type QueueOptions struct {
	Registry *providers.Registry // the providers that this process knows, with their max_concurrency; nil: none
	Logger   *slog.Logger        // [slog.Default()]
}

// Queue is River's queues of attempts, and which of them this process works on. It is safe for concurrent use.
type Queue struct {
	client *queue.Client
	work   *entryWorker
	cancel *cancelWorker
	queues map[string]river.QueueConfig // by name
	log    *slog.Logger

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
	q := &Queue{work: &entryWorker{}, cancel: &cancelWorker{}, log: o.Logger, running: map[string]*worker{},
		queues: map[string]river.QueueConfig{
			restQueue:   {MaxWorkers: restWorkers, FetchPollInterval: time.Second},
			cancelQueue: {MaxWorkers: cancelWorkers, FetchPollInterval: time.Second},
		}}
	if o.Registry != nil {
		for _, t := range o.Registry.Targets() {
			q.queues[queueOf(t.Provider)] = river.QueueConfig{MaxWorkers: t.Config.MaxConcurrency}
		}
	}
	q.life, q.end = context.WithCancel(context.Background())
	return q
}

// Register adds the workers of attempts and of cancellations.
func (q *Queue) Register(w *river.Workers) (map[string]river.QueueConfig, error) {
	if err := errors.Join(river.AddWorkerSafely(w, q.work), river.AddWorkerSafely(w, q.cancel)); err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	return q.queues, nil
}

// Use takes the client that entries are added to and worked on through.
func (q *Queue) Use(c *queue.Client) { q.client = c }

// Enqueue adds an entry to the queue of the target's provider, inside the transaction, and returns its id.
func (q *Queue) Enqueue(ctx context.Context, tx *store.Tx, attemptID, target string, due time.Time) (int64, error) {
	return q.add(ctx, tx, queueOf(jobs.ProviderOf(target)), attemptID, due)
}

// EnqueueUnserved adds an entry to the queue for the rest, which this process works on too.
func (q *Queue) EnqueueUnserved(ctx context.Context, tx *store.Tx, attemptID, _ string, due time.Time) (int64, error) {
	return q.add(ctx, tx, restQueue, attemptID, due)
}

func (q *Queue) add(ctx context.Context, tx *store.Tx, name, attemptID string, due time.Time) (int64, error) {
	// One try: what an attempt may do next is decided by internal/jobs, never by the queue.
	opts := &river.InsertOpts{Queue: name, MaxAttempts: 1}
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

// worksOn says whether this process works on a queue, once it is started.
func (q *Queue) worksOn(name string) bool {
	_, ok := q.queues[name]
	return ok
}

// misplaced says that the attempt of an entry belongs into another queue of this process.
func (q *Queue) misplaced(entry *rivertype.JobRow, target string) bool {
	name := queueOf(jobs.ProviderOf(target))
	return entry.Queue != name && q.worksOn(name)
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

// Look says what is to be expected of the entries; those that are not in the answer are lost.
func (q *Queue) Look(ctx context.Context, entries []int64, grace, unserved time.Duration) (map[int64]jobs.Entry, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	res, err := q.client.JobList(ctx, river.NewJobListParams().IDs(entries...).First(len(entries)))
	if err != nil {
		return nil, fmt.Errorf("dispatch: list entries: %w", err)
	}
	found := make(map[int64]jobs.Entry, len(res.Jobs))
	for _, j := range res.Jobs {
		switch j.State {
		case rivertype.JobStateAvailable, rivertype.JobStateScheduled, rivertype.JobStateRetryable, rivertype.JobStatePending:
			found[j.ID] = jobs.EntryAlive
			if !q.worksOn(j.Queue) && time.Since(j.ScheduledAt) >= unserved {
				found[j.ID] = jobs.EntryElsewhere
			}
		case rivertype.JobStateRunning:
			if j.AttemptedAt != nil && time.Since(*j.AttemptedAt) < grace {
				found[j.ID] = jobs.EntryAlive
			}
		case rivertype.JobStateCancelled, rivertype.JobStateCompleted, rivertype.JobStateDiscarded:
		}
	}
	return found, nil
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
