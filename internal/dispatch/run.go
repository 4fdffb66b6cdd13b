package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/tracecontext"
	"github.com/docket-gateway/docket/providers"
)

// Bounds on how long a worker tries to write down what it knows while the database does not answer. An outcome that
// cannot be written leaves the attempt to the sweep, as UNKNOWN.
const (
	settleFor   = 5 * time.Minute
	settleEvery = 5 * time.Second
	writeFor    = 5 * time.Second // once the process is stopping
)

// run is one attempt from its lease to its outcome. free gives the queue's slot back; run always calls it.
//
// A panic, of an adapter say, costs its own attempt and not the process: FAILED if nothing was sent, else UNKNOWN.
func (d *Dispatcher) run(l *jobs.Lease, log *slog.Logger, free func()) {
	defer free()
	ctx, cancel := context.WithCancelCause(d.send)
	defer cancel(nil)
	defer d.queue.register(l.Attempt.ID, cancel)()

	sent := false
	err := recovered(func() error { d.attempt(ctx, cancel, l, log, free, &sent); return nil })
	switch {
	case err == nil:
	case sent:
		log.ErrorContext(ctx, "panic after the request may have been sent", "error", err)
		d.settle(ctx, log, l.Attempt.ID, jobs.Outcome{Unknown: true, Failure: &jobs.Failure{
			Code: codeInternal, Message: "Docket failed while the request was under way; nobody can tell what became of it."}})
	default:
		log.ErrorContext(ctx, "panic before anything was sent", "error", err)
		d.refuse(ctx, log, l, &jobs.Failure{Code: codeInternal, Message: "Docket failed before anything was sent."})
	}
}

// attempt sets sent once the request may be on its way.
func (d *Dispatcher) attempt(ctx context.Context, cancel context.CancelCauseFunc, l *jobs.Lease, log *slog.Logger, free func(), sent *bool) {
	target, req, failure := d.prepare(l)
	if failure != nil {
		d.refuse(ctx, log, l, failure)
		return
	}
	stopBeat := d.beat(ctx, cancel, l, log)
	defer stopBeat()
	permit, failure := d.circuits.enter(target.ID)
	if failure != nil {
		d.metrics.CircuitRefused(target.ID)
		d.refuse(ctx, log, l, failure)
		return
	}
	defer permit.giveBack()
	l.SentTo = target.Config.Endpoint()
	// Nothing is sent unless this one commit is known to have taken place.
	if err := d.jobs.MarkSent(ctx, l); err != nil {
		switch {
		case ctx.Err() != nil: // cancelled just before, or stopping: nothing is wrong
			log.DebugContext(ctx, "not sent", "cause", context.Cause(ctx))
			d.release(ctx, l, log) // does nothing should the attempt be settled, or the mark be written after all
		case !errors.Is(err, jobs.ErrNotYours):
			log.WarnContext(ctx, "not sent: the mark could not be written", "error", err)
		}
		return
	}
	*sent = true
	r := &reporter{d: d, lease: l, log: log, ctx: ctx, free: free, permit: permit, linger: target.Config.Linger, quiet: hedgeAfter(l)}
	defer r.stop()
	outcome := target.Sender.Send(ctx, req, r)
	permit.outcome(ctx, outcome)
	stopBeat()
	r.stop()
	if outcome.Kind == providers.Unknown {
		r.keep()
	}
	if errors.Is(context.Cause(ctx), errSettled) && outcome.Kind != providers.Completed && outcome.Usage == nil {
		// Whoever settled it has told the world. An answer that still came in is offered and loses the claim; what was
		// used is kept.
		return
	}
	if outcome.Kind == providers.Unknown && r.unknown && outcome.Usage == nil {
		return // said before, when it happened
	}
	d.settle(ctx, log, l.Attempt.ID, translate(outcome))
}

// recovered makes a panic of f an error.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("dispatch: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// prepare builds the request from the intent and the task version that the job was created with.
func (d *Dispatcher) prepare(l *jobs.Lease) (providers.Target, providers.Request, *jobs.Failure) {
	target, ok := d.registry.Lookup(l.Attempt.Target)
	if !ok {
		return target, providers.Request{}, &jobs.Failure{Code: codeTargetUnknown, Message: "This server has no such target any more."}
	}
	prompt, err := l.Task.Render(l.Job.Input)
	if err != nil {
		return target, providers.Request{}, &jobs.Failure{Code: codePrompt, Message: "The task's prompt could not be rendered from this input."}
	}
	if f := target.CheckWindow(prompt.System, prompt.User, l.Task.MaxOutputTokens); f != nil {
		return target, providers.Request{}, failure(f)
	}
	return target, providers.Request{
		AttemptID: l.Attempt.ID, Task: l.Task.Name, Model: target.Model.Name,
		System: prompt.System, Prompt: prompt.User, Input: l.Job.Input, Schema: l.Task.OutputSchemaJSON,
		Temperature: l.Task.Temperature, MaxOutputTokens: target.Model.OutputBudget(l.Task.MaxOutputTokens),
		Traceparent: tracecontext.OfAttempt(l.Job.ID, traceparent(l.Job), l.Attempt.ID),
	}, nil
}

// traceparent is what the request that made the job brought, "" if nothing.
func traceparent(j *ent.Job) string {
	if j.Traceparent == nil {
		return ""
	}
	return *j.Traceparent
}

// Codes of failures that are neither a provider's nor a job's.
const (
	codeTargetUnknown = "TARGET_UNKNOWN"
	codePrompt        = "PROMPT_NOT_RENDERED"
	codeInternal      = "INTERNAL_ERROR" // also after sending, where it is UNKNOWN
)

// beat renews the lease until stopped, and stops the request when the attempt is not this worker's any more. An UNKNOWN
// attempt has no lease; its worker goes on listening.
func (d *Dispatcher) beat(ctx context.Context, cancel context.CancelCauseFunc, l *jobs.Lease, log *slog.Logger) (stop func()) {
	return d.watch(ctx, cancel, l.Attempt.ID, log, func(ctx context.Context) error { return d.jobs.Beat(ctx, l) })
}

// watch looks three times a lease whether the attempt is still to be worked on, and cancels with errSettled once it is
// settled. hold renews what the worker holds; while it says ErrNotYours, the attempt's state decides. stop waits for the
// watcher and may be called twice.
func (d *Dispatcher) watch(ctx context.Context, cancel context.CancelCauseFunc, attemptID string, log *slog.Logger, hold func(context.Context) error) (stop func()) {
	ctx, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(d.jobs.Lease() / 3)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			err := hold(ctx)
			if errors.Is(err, jobs.ErrNotYours) {
				var still bool
				if still, err = d.jobs.Open(ctx, attemptID); err == nil && !still {
					cancel(errSettled)
					return
				}
			}
			if err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "look after the attempt", "error", err)
			}
		}
	}()
	return func() { end(); <-done }
}

// settle writes an outcome down.
func (d *Dispatcher) settle(ctx context.Context, log *slog.Logger, attemptID string, o jobs.Outcome) {
	d.write(ctx, log, func(ctx context.Context) error {
		v, err := d.jobs.Settle(ctx, attemptID, o)
		if errors.Is(err, jobs.ErrNotFound) { // nothing is left to write to
			log.InfoContext(ctx, "outcome dropped: the attempt was removed with its job")
			return nil
		}
		if err == nil {
			log.InfoContext(ctx, "attempt", "state", v.Attempt.State, "landed", v.Landed, "job_state", v.Job.State)
		}
		return err
	})
}

// keepHandle writes down a handle that did not come, or was not written, with the attempt's move to RUNNING.
func (d *Dispatcher) keepHandle(ctx context.Context, log *slog.Logger, attemptID string, a providers.Acknowledgement) {
	if a.Handle == "" {
		return
	}
	d.write(ctx, log, func(ctx context.Context) error {
		err := d.jobs.KeepHandle(ctx, attemptID, a.ProviderRequestID, a.Handle)
		if errors.Is(err, jobs.ErrNotFound) { // removed with its job
			return nil
		}
		return err
	})
}

// refuse writes down that the attempt is not going to be sent.
func (d *Dispatcher) refuse(ctx context.Context, log *slog.Logger, l *jobs.Lease, f *jobs.Failure) {
	d.write(ctx, log, func(ctx context.Context) error {
		err := d.jobs.Refuse(ctx, l, *f)
		if errors.Is(err, jobs.ErrNotYours) {
			return nil
		}
		return err
	})
}

// write is patient: an answer that is paid for is not dropped because the database is away. Once the process is stopping
// it has writeFor left.
func (d *Dispatcher) write(ctx context.Context, log *slog.Logger, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
	defer cancel()
	defer context.AfterFunc(d.send, func() { //nolint:contextcheck // what is written outlives its request, not the process
		select {
		case <-ctx.Done():
		case <-time.After(writeFor):
			cancel()
		}
	})()
	wait := backoff.NewExponentialBackOff()
	wait.MaxInterval = settleEvery
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := recovered(func() error { return f(ctx) })
		if err != nil {
			log.WarnContext(ctx, "write the outcome", "error", err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(settleFor))
	if err != nil {
		log.ErrorContext(ctx, "the outcome could not be written; the attempt is left to the sweep", "error", err)
	}
}

func (d *Dispatcher) release(ctx context.Context, l *jobs.Lease, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeFor)
	defer cancel()
	if err := d.jobs.Release(ctx, l); err != nil {
		log.WarnContext(ctx, "release", "error", err)
	}
}

func translate(o providers.Outcome) jobs.Outcome {
	out := jobs.Outcome{ProviderRequestID: o.ProviderRequestID}
	if o.Usage != nil {
		out.Usage = jobs.Usage(*o.Usage)
	}
	if o.Kind == providers.Completed {
		out.Output = o.Output
		return out
	}
	out.Unknown = o.Kind == providers.Unknown
	out.Failure = failure(o.Failure)
	return out
}

func failure(f *providers.Failure) *jobs.Failure {
	if f == nil {
		return &jobs.Failure{Code: providers.CodeProviderError, Message: "The provider's adapter gave no reason."}
	}
	return &jobs.Failure{Code: f.Code, Message: f.Message, Retryable: f.Retryable, RetryAfter: f.RetryAfter}
}
