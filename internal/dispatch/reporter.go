package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

// again is how long the reporter waits before it tries once more to write what could not be written.
const again = time.Second

// reporter passes an attempt's progress on to internal/jobs. Send calls it from one goroutine.
type reporter struct {
	d       *Dispatcher
	lease   *jobs.Lease
	log     *slog.Logger
	ctx     context.Context //nolint:containedctx // the life of this one request
	free    func()
	permit  *permit
	unknown bool

	ack  *providers.Acknowledgement // until it is written
	next time.Time                  // not tried again before

	linger time.Duration // how long Send listens after Unknown

	quiet time.Duration // silence after the acknowledgement that starts a hedge, 0 for never
	timer *time.Timer
}

// Acknowledged makes the attempt RUNNING. When that cannot be written the request goes on: its outcome can be written
// from STARTING too, and the next sign of life tries again.
func (r *reporter) Acknowledged(a providers.Acknowledgement) {
	r.ack = &a
	r.acknowledge()
	if r.quiet > 0 {
		r.timer = time.AfterFunc(r.quiet, r.hedge)
	}
}

// Progress puts the hedge off.
func (r *reporter) Progress() {
	if r.timer != nil {
		r.timer.Reset(r.quiet)
	}
	if r.ack != nil && time.Now().After(r.next) {
		r.acknowledge()
	}
}

func (r *reporter) acknowledge() {
	err := r.d.jobs.Acknowledge(r.ctx, r.lease, r.ack.ProviderRequestID, r.ack.Handle)
	if err == nil {
		r.ack = nil
		return
	}
	r.next = time.Now().Add(again)
	if r.ctx.Err() == nil {
		r.log.WarnContext(r.ctx, "acknowledge", "error", err)
	}
}

// Unknown is written when it happens, not when the request ends: the owner may want to decide before. The queue's slot is
// given back, since from now on the worker only listens.
func (r *reporter) Unknown(f providers.Failure) {
	r.stop()
	r.keep()
	r.unknown = true
	// Now, not when the worker stops to listen: a trial must not keep others waiting for as long as that.
	r.permit.outcome(r.ctx, providers.Outcome{Kind: providers.Unknown, Failure: &f})
	r.d.settle(r.ctx, r.log, r.lease.Attempt.ID, jobs.Outcome{Unknown: true, Failure: failure(&f), Listens: r.linger})
	r.free()
}

// AcknowledgedLate keeps the handle of an attempt that is UNKNOWN, so that it is asked about by it.
func (r *reporter) AcknowledgedLate(a providers.Acknowledgement) {
	r.ack = &a
	r.keep()
}

// keep writes down the handle of an acknowledgement that could not be written when it came. It comes before the outcome:
// without it nobody could ask about an attempt that is UNKNOWN.
func (r *reporter) keep() {
	if r.ack == nil {
		return
	}
	r.d.keepHandle(r.ctx, r.log, r.lease.Attempt.ID, *r.ack)
	r.ack = nil
}

// hedge runs in a goroutine of its own. It may be called twice for one silence; the second finds the first one's attempt.
func (r *reporter) hedge() {
	err := recovered(func() error { return r.d.jobs.Hedge(r.ctx, r.lease.Attempt.ID) })
	if err == nil || r.ctx.Err() != nil {
		return
	}
	r.log.WarnContext(r.ctx, "hedge", "error", err)
	time.AfterFunc(again, r.hedge) // ends with the request's context
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
