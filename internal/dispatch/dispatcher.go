package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/tracecontext"
	"github.com/docket-gateway/docket/providers"
)

// Causes for which a request is stopped.
var (
	errSettled  = errors.New("dispatch: settled by somebody else")
	errStopping = errors.New("dispatch: the process is stopping")
)

// Jobs is what a worker reports to: *jobs.Service.
type Jobs interface {
	Lease() time.Duration
	Take(ctx context.Context, attemptID string, entry int64) (*jobs.Lease, error)
	MarkSent(ctx context.Context, l *jobs.Lease) error
	Beat(ctx context.Context, l *jobs.Lease) error
	Open(ctx context.Context, attemptID string) (bool, error)
	Acknowledge(ctx context.Context, l *jobs.Lease, providerRequestID, handle string) error
	KeepHandle(ctx context.Context, attemptID, providerRequestID, handle string) error
	Abandoned(ctx context.Context, attemptID string) (*ent.Attempt, error)
	Hedge(ctx context.Context, attemptID string) error
	Settle(ctx context.Context, attemptID string, o jobs.Outcome) (jobs.Verdict, error)
	Refuse(ctx context.Context, l *jobs.Lease, f jobs.Failure) error
	Release(ctx context.Context, l *jobs.Lease) error
	SweepLeases(ctx context.Context) (jobs.Swept, error)
	SweepQueue(ctx context.Context) (jobs.Swept, error)
	SweepPresumedDead(ctx context.Context, provider string, after time.Duration) (int, error)
	Unanswered(ctx context.Context, q jobs.Question, limit int) ([]string, error)
	Ask(ctx context.Context, q jobs.Question, attemptID string) (*jobs.Asked, error)
	Unsettled(ctx context.Context, q *jobs.Asked) error
}

// Dispatcher works on the queue's entries and sweeps up after workers that died, here or elsewhere.
type Dispatcher struct {
	queue    *Queue
	jobs     Jobs
	registry *providers.Registry
	inquiry  []*inquiry
	circuits circuits
	metrics  Metrics
	log      *slog.Logger

	// send is the life of requests: it outlasts queue entries and ends in Stop.
	send       context.Context //nolint:containedctx // see above
	cancelSend context.CancelCauseFunc
	requests   sync.WaitGroup
	sweeper    sync.WaitGroup
	stopSweep  context.CancelFunc
}

// New returns a dispatcher that does nothing yet.
func New(q *Queue, j Jobs, r *providers.Registry, m Metrics, log *slog.Logger) *Dispatcher {
	d := &Dispatcher{queue: q, jobs: j, registry: r, inquiry: inquiries(r), circuits: newCircuits(r, log), metrics: m, log: log}
	d.send, d.cancelSend = context.WithCancelCause(context.Background())
	q.work.dispatcher, q.cancel.dispatcher = d, d
	return d
}

// Start takes up work. ctx bounds starting, not working.
func (d *Dispatcher) Start(ctx context.Context) error {
	if err := d.queue.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("dispatch: start the queue: %w", err)
	}
	sweep, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.stopSweep = cancel
	d.sweeper.Go(func() { d.sweep(sweep) })
	return nil
}

// grace is how much longer Stop takes than it was given, to write down what was cut off.
const grace = 2 * writeFor

// Stop takes no new work, waits for what is under way until ctx is done, and then cuts it off. A request that was cut off
// leaves its attempt UNKNOWN; one that was not sent is left to another process. It fails if something could not be ended
// in spite of that; the sweep of another process finds what is left.
func (d *Dispatcher) Stop(ctx context.Context) error {
	if d.stopSweep == nil {
		return nil // never started
	}
	d.stopSweep()
	d.sweeper.Wait()
	err := d.queue.client.Stop(ctx)
	d.cancelSend(errStopping) // also ends those that only linger
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err != nil {
		err = d.queue.client.StopAndCancel(bound)
	}
	d.queue.close()
	if err != nil {
		return fmt.Errorf("dispatch: stop the queue: %w", err)
	}
	done := make(chan struct{})
	go func() { defer close(done); d.requests.Wait() }()
	select {
	case <-done:
		return nil
	case <-bound.Done():
		return errors.New("dispatch: a request did not end although it was told to")
	}
}

// sweep runs in every process rather than in an elected leader: the sweeps are guarded moves, and orphans are found
// within two leases even when the leader is the one that died.
func (d *Dispatcher) sweep(ctx context.Context) {
	t := time.NewTicker(d.jobs.Lease() / 3)
	defer t.Stop()
	for {
		for _, f := range []func(context.Context) (jobs.Swept, error){d.jobs.SweepLeases, d.jobs.SweepQueue} {
			var s jobs.Swept
			err := recovered(func() (err error) { s, err = f(ctx); return err })
			if err != nil && ctx.Err() == nil {
				d.log.WarnContext(ctx, "sweep", "error", err)
			}
			if s.Requeued > 0 || s.Unknown > 0 {
				d.log.InfoContext(ctx, "swept up after a lost worker", "requeued", s.Requeued, "unknown", s.Unknown)
			}
		}
		d.reconcile(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// entryWorker is River's view of the dispatcher.
type entryWorker struct {
	river.WorkerDefaults[entryArgs]
	dispatcher *Dispatcher
}

// abandonedAfter is how old a running entry must be for River to take it for a dead process's and discard it. Requests do
// not live in the entry's context, so this cuts nothing off; recovery of the attempt itself is the sweep's.
const abandonedAfter = 25 * time.Hour

func (w *entryWorker) Timeout(*river.Job[entryArgs]) time.Duration { return abandonedAfter }

// Work returns as soon as the attempt needs no worker's slot any more: it is settled, or UNKNOWN and only lingers.
func (w *entryWorker) Work(ctx context.Context, entry *river.Job[entryArgs]) error {
	d := w.dispatcher
	log := d.log.With("attempt", entry.Args.AttemptID)
	lease, err := d.jobs.Take(ctx, entry.Args.AttemptID, entry.ID)
	if errors.Is(err, jobs.ErrNotYours) {
		return nil
	}
	if err != nil {
		log.WarnContext(ctx, "take", "error", err)
		return river.JobSnooze(2 * time.Second) //nolint:wrapcheck // a signal to River, not an error
	}
	log = log.With("job", lease.Job.ID, "target", lease.Attempt.Target, "trace", tracecontext.TraceID(lease.Job.ID, traceparent(lease.Job)))
	if d.queue.misplaced(entry.JobRow, lease.Attempt.Target) {
		d.release(ctx, lease, log)
		return nil
	}
	free := make(chan struct{})
	d.requests.Go(func() { //nolint:contextcheck // a request that lingers outlives its entry
		d.run(lease, log, sync.OnceFunc(func() { close(free) }))
	})
	<-free
	return nil
}
