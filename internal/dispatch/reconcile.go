package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/tracecontext"
	"github.com/docket-gateway/docket/providers"
)

// questionsAtOnce is how many questions to one provider are under way in this process, so that an outage is not followed
// by a flood.
const questionsAtOnce = 8

// inquiry is what is done about one provider's UNKNOWN attempts, beside waiting.
type inquiry struct {
	provider     string
	presumeAfter time.Duration
	questions    []jobs.Question
	slots        chan struct{}
}

// inquiries follow from the configuration and from what the adapters can do.
func inquiries(r *providers.Registry) []*inquiry {
	var list []*inquiry
	targets := map[string][]providers.Target{}
	for _, t := range r.Targets() {
		if targets[t.Provider] == nil {
			list = append(list, &inquiry{provider: t.Provider, presumeAfter: t.Config.PresumeDeadAfter,
				slots: make(chan struct{}, questionsAtOnce)})
		}
		targets[t.Provider] = append(targets[t.Provider], t)
	}
	for _, in := range list {
		var ids []string
		for _, t := range targets[in.provider] {
			ids = append(ids, t.ID)
		}
		t := targets[in.provider][0]
		_, asks := t.Sender.(providers.Retriever)
		if asks {
			in.questions = append(in.questions, jobs.Question{Targets: ids, Takes: t.Config.TotalTimeout})
		}
		if t.Config.Idempotent {
			in.questions = append(in.questions, jobs.Question{Targets: ids, Resend: true, SentTo: t.Config.Endpoint(),
				SkipHandles: asks, Takes: t.Config.TotalTimeout + t.Config.Linger})
		}
	}
	return list
}

// reconcile looks once for UNKNOWN attempts that something can be done about. Questions go on after it returned.
func (d *Dispatcher) reconcile(ctx context.Context) {
	for _, in := range d.inquiry {
		err := recovered(func() error {
			for _, q := range in.questions {
				if err := d.ask(ctx, in, q); err != nil {
					return err
				}
			}
			dead, err := d.jobs.SweepPresumedDead(ctx, in.provider, in.presumeAfter)
			if dead > 0 {
				d.log.InfoContext(ctx, "presumed dead", "provider", in.provider, "attempts", dead)
			}
			return err //nolint:wrapcheck // logged just below
		})
		if err != nil && ctx.Err() == nil {
			d.log.WarnContext(ctx, "reconcile", "provider", in.provider, "error", err)
		}
	}
}

// ask puts as many questions as there are slots. While a circuit is open nothing is sent again to its target; asking by a
// handle goes on, since it has no effects and another part of the provider answers it. Neither counts for the circuit.
func (d *Dispatcher) ask(ctx context.Context, in *inquiry, q jobs.Question) error {
	if q.Resend {
		q.Targets = slices.DeleteFunc(slices.Clone(q.Targets), d.circuits.open)
		if len(q.Targets) == 0 {
			return nil
		}
	}
	free := cap(in.slots) - len(in.slots) // only this goroutine takes any
	if free == 0 {
		return nil
	}
	ids, err := d.jobs.Unanswered(ctx, q, free)
	if err != nil {
		return err //nolint:wrapcheck // says what it was about
	}
	var errs []error
	for _, id := range ids {
		asked, err := d.jobs.Ask(ctx, q, id)
		if errors.Is(err, jobs.ErrNotYours) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		in.slots <- struct{}{}
		d.requests.Go(func() { //nolint:contextcheck // a question outlives the look that found it, not the process
			defer func() { <-in.slots }()
			d.question(q, asked)
		})
	}
	return errors.Join(errs...)
}

// question puts one question and writes down what came of it.
func (d *Dispatcher) question(q jobs.Question, asked *jobs.Asked) {
	log := d.log.With("attempt", asked.Attempt.ID, "job", asked.Job.ID, "target", asked.Attempt.Target, "resend", q.Resend,
		"trace", tracecontext.TraceID(asked.Job.ID, traceparent(asked.Job)))
	ctx, cancel := context.WithCancelCause(d.send)
	defer cancel(nil)
	defer d.watch(ctx, cancel, asked.Attempt.ID, log, noLease)()
	var out jobs.Outcome
	answered := false
	err := recovered(func() (err error) {
		if q.Resend {
			out, answered = d.resend(ctx, asked, log)
		} else {
			out, answered, err = d.retrieve(ctx, asked)
		}
		return err
	})
	switch {
	case answered:
		d.settle(ctx, log, asked.Attempt.ID, out)
		return
	case errors.Is(context.Cause(ctx), errSettled):
		return
	case err != nil && ctx.Err() == nil:
		log.WarnContext(ctx, "ask the provider", "error", err)
	}
	d.write(ctx, log, func(ctx context.Context) error { return d.jobs.Unsettled(ctx, asked) })
}

// retrieve asks by the handle.
func (d *Dispatcher) retrieve(ctx context.Context, asked *jobs.Asked) (out jobs.Outcome, answered bool, err error) {
	target, _ := d.registry.Lookup(asked.Attempt.Target)
	r, ok := target.Sender.(providers.Retriever)
	if !ok || asked.Attempt.ProviderHandle == nil {
		return out, false, errors.New("dispatch: cannot be asked by handle")
	}
	ctx, cancel := context.WithTimeout(ctx, target.Config.TotalTimeout)
	defer cancel()
	o, err := r.Retrieve(ctx, providers.Query{
		AttemptID: asked.Attempt.ID, Handle: *asked.Attempt.ProviderHandle, Model: target.Model.Name,
		MaxOutputTokens: target.Model.OutputBudget(asked.Task.MaxOutputTokens), Schema: asked.Task.OutputSchemaJSON,
		Traceparent: tracecontext.OfAttempt(asked.Job.ID, traceparent(asked.Job), asked.Attempt.ID),
	})
	if err != nil || o.Kind != providers.Completed && o.Kind != providers.Failed {
		return out, false, err //nolint:wrapcheck // logged by the caller
	}
	out = translate(o)
	out.Via = jobs.ViaAsked
	return out, true, nil
}

// resend sends the request again, the same in every byte that matters, under the same key.
func (d *Dispatcher) resend(ctx context.Context, asked *jobs.Asked, log *slog.Logger) (out jobs.Outcome, answered bool) {
	target, req, failure := d.prepare(&jobs.Lease{Attempt: asked.Attempt, Job: asked.Job, Task: asked.Task})
	if failure != nil || ctx.Err() != nil {
		return out, false
	}
	o := target.Sender.Send(ctx, req, resent{d, ctx, log, req.AttemptID})
	out = translate(o)
	out.Via = jobs.ViaResent
	return out, aboutTheKey(o)
}

// aboutTheKey says whether a re-send's outcome is the end of what runs under the key. That the re-send was refused (no
// connection, too many requests, a conflict with the request under way, a wrong key) tells nothing about the first request:
// a FAILED would let a second one run beside it.
func aboutTheKey(o providers.Outcome) bool {
	switch o.Kind {
	case providers.Completed:
		return true
	case providers.Failed: // only what a run ended with has a reason why it finished
		return o.FinishReason != "" && o.Failure != nil && o.Failure.Code != providers.CodeMalformedAnswer
	default:
		return false
	}
}

// noLease is what a question holds: an UNKNOWN attempt has no lease, so its state alone says when to stop.
func noLease(context.Context) error { return jobs.ErrNotYours }

// resent is the reporter of a re-send: its attempt is UNKNOWN and stays so until the outcome. The handle of what runs under
// the key is kept.
type resent struct {
	d         *Dispatcher
	ctx       context.Context //nolint:containedctx // the life of this one request
	log       *slog.Logger
	attemptID string
}

func (r resent) Acknowledged(a providers.Acknowledgement) {
	r.d.keepHandle(r.ctx, r.log, r.attemptID, a)
}
func (r resent) AcknowledgedLate(a providers.Acknowledgement) { r.Acknowledged(a) }
func (resent) Progress()                                      {}
func (resent) Unknown(providers.Failure)                      {}
