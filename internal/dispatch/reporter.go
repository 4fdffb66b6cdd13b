package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

// reporter passes an attempt's progress on to internal/jobs. Send calls it from one goroutine.
type reporter struct {
	d       *Dispatcher
	lease   *jobs.Lease
	log     *slog.Logger
	ctx     context.Context //nolint:containedctx // the life of this one request
	free    func()
	unknown bool

	quiet time.Duration // silence after the acknowledgement that starts a hedge, 0 for never
	timer *time.Timer
}

// Acknowledged makes the attempt RUNNING. When that cannot be written the request goes on: its outcome can be written
// from STARTING too.
func (r *reporter) Acknowledged(a providers.Acknowledgement) {
	if err := r.d.jobs.Acknowledge(r.ctx, r.lease, a.ProviderRequestID, a.Handle); err != nil && r.ctx.Err() == nil {
		r.log.WarnContext(r.ctx, "acknowledge", "error", err)
	}
	if r.quiet > 0 {
		r.timer = time.AfterFunc(r.quiet, r.hedge)
	}
}

// Progress puts the hedge off.
func (r *reporter) Progress() {
	if r.timer != nil {
		r.timer.Reset(r.quiet)
	}
}

// Unknown is written when it happens, not when the request ends: the owner may want to decide before. The queue's slot is
// given back, since from now on the worker only listens.
func (r *reporter) Unknown(f providers.Failure) {
	r.stop()
	r.unknown = true
	r.d.settle(r.log, r.lease.Attempt.ID, jobs.Outcome{Unknown: true, Failure: failure(&f)})
	r.free()
}

func (r *reporter) hedge() {
	if err := r.d.jobs.Hedge(r.ctx, r.lease.Attempt.ID); err != nil && r.ctx.Err() == nil {
		r.log.WarnContext(r.ctx, "hedge", "error", err)
	}
}

func (r *reporter) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// hedgeAfter is the intent's own setting before the task's; neither permits racing that the task forbids.
func hedgeAfter(l *jobs.Lease) time.Duration {
	switch ms := l.Job.HedgeAfterMs; {
	case !l.Task.RaceAllowed:
		return 0
	case ms != nil:
		return time.Duration(*ms) * time.Millisecond
	default:
		return l.Task.HedgeAfter
	}
}
