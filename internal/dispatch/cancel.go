package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tracecontext"
	"github.com/docket-gateway/docket/providers"
)

const (
	// cancelQueue is for requests that run at a provider by a handle and are of no use any more. They wait behind no attempt.
	cancelQueue = "cancellations"
	// cancelWorkers is how many of them a process works on at once.
	cancelWorkers = 4
	// cancelTries is how often a provider is told. River waits 1, 16, 81 and 256 seconds between them: long enough for a process
	// to start that knows the provider, and not so long that nothing is left to cancel.
	cancelTries = 5
	// cancelFor bounds one try.
	cancelFor = 30 * time.Second
)

// cancelArgs is a queue entry: the attempt's id and nothing of its content.
type cancelArgs struct {
	AttemptID string `json:"attempt_id"`
}

// Kind names the entries in River's tables.
func (cancelArgs) Kind() string { return "cancel" }

// EnqueueCancel adds an entry, inside the transaction, by which an attempt's provider is told that its answer is of no use any more.
func (q *Queue) EnqueueCancel(ctx context.Context, tx *store.Tx, attemptID string) error {
	_, err := q.client.InsertTx(ctx, tx.SQL, cancelArgs{AttemptID: attemptID}, &river.InsertOpts{Queue: cancelQueue, MaxAttempts: cancelTries})
	if err != nil {
		return fmt.Errorf("dispatch: enqueue a cancellation: %w", err)
	}
	return nil
}

// cancelWorker tells providers to end what runs by a handle for attempts that are CANCELLED or SUPERSEDED. It does so for all
// of them, whether or not a worker was at the request: closing a connection does not end what runs by a handle. Nothing
// depends on it, no state moves, and being told twice changes nothing.
type cancelWorker struct {
	river.WorkerDefaults[cancelArgs]
	dispatcher *Dispatcher
}

func (w *cancelWorker) Timeout(*river.Job[cancelArgs]) time.Duration { return cancelFor }

// Work returns an error for what is worth another try.
func (w *cancelWorker) Work(ctx context.Context, entry *river.Job[cancelArgs]) error {
	d := w.dispatcher
	a, err := d.jobs.Abandoned(ctx, entry.Args.AttemptID)
	if errors.Is(err, jobs.ErrNotYours) {
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // says what it was about
	}
	log := d.log.With("attempt", a.ID, "job", a.JobID, "target", a.Target, "trace", tracecontext.TraceID(a.JobID, traceparent(a.Edges.Job)))
	target, ok := d.registry.Lookup(a.Target)
	if !ok { // another process may know it
		return fmt.Errorf("dispatch: cancel attempt %s at its provider: this process has no target %s", a.ID, a.Target)
	}
	c, ok := target.Sender.(providers.Canceller)
	if !ok {
		return nil
	}
	var used *providers.Usage
	err = recovered(func() (err error) {
		used, err = c.Cancel(ctx, providers.Query{
			AttemptID: a.ID, Handle: *a.ProviderHandle, Model: target.Model.Name,
			Traceparent: tracecontext.OfAttempt(a.JobID, traceparent(a.Edges.Job), a.ID),
		})
		return err
	})
	if err != nil && ctx.Err() != nil && d.send.Err() != nil { // stopping: the next process tries again
		return err
	}
	d.metrics.Cancelled(a.Target, err == nil)
	if err != nil {
		log.WarnContext(ctx, "cancel at the provider", "try", entry.Attempt, "of", entry.MaxAttempts, "error", err)
		return tryAgain(err)
	}
	log.InfoContext(ctx, "cancelled at the provider")
	if used == nil {
		return nil
	}
	o := translate(providers.Outcome{Kind: providers.Unknown, Usage: used,
		Failure: &providers.Failure{Code: providers.CodeCancelled, Message: "cancelled at the provider"}})
	if _, err := d.jobs.Settle(ctx, a.ID, o); err != nil && !errors.Is(err, jobs.ErrNotFound) {
		return fmt.Errorf("dispatch: keep what a cancelled request used: %w", err)
	}
	return nil
}

// tryAgain leaves an error to River's next try, but for a definite no, to which nothing would change.
func tryAgain(err error) error {
	var f *providers.Failure
	if errors.As(err, &f) && f.Code == providers.CodeBadRequest {
		return river.JobCancel(err) //nolint:wrapcheck // a signal to River
	}
	return err
}
