package exchange

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/docket-gateway/docket/providers"
)

// progress is what the exchange's goroutine tells the caller's. Nothing in it blocks, so that a slow reporter never
// holds up reading.
type progress struct {
	track track

	mu     sync.Mutex
	state  seen
	wakeup chan struct{} // one place: something is new
}

type seen struct {
	answered bool // status and headers came
	ack      *providers.Acknowledgement
	life     bool // since the last look
	outcome  *providers.Outcome
}

// usage is what was told of it until the exchange ended. It is billed, whatever becomes of the attempt.
func (s seen) usage() *providers.Usage {
	if s.outcome == nil {
		return nil
	}
	return s.outcome.Usage
}

func (p *progress) tell(change func(*seen)) {
	p.mu.Lock()
	change(&p.state)
	p.mu.Unlock()
	select {
	case p.wakeup <- struct{}{}:
	default:
	}
}

func (p *progress) rejected() { p.tell(func(s *seen) { s.answered = true }) }

func (p *progress) acknowledge(a providers.Acknowledgement) {
	p.tell(func(s *seen) { s.answered, s.ack = true, &a })
}

// look returns what is known and forgets the sign of life.
func (p *progress) look() seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.state
	p.state.life = false
	return s
}

// reader is an answer's body. Every byte is a sign of life, also those of comments in a stream.
type reader struct {
	r       io.Reader
	p       *progress
	left    int64
	bounded bool
}

func (r *reader) Read(b []byte) (int, error) {
	if r.bounded && r.left <= 0 {
		return 0, ErrAnswerTooLarge
	}
	if r.bounded && int64(len(b)) > r.left {
		b = b[:r.left]
	}
	n, err := r.r.Read(b)
	r.left -= int64(n)
	if n > 0 {
		r.p.tell(func(s *seen) { s.life = true })
	}
	return n, err
}

// Do performs the call and reports to r from the calling goroutine. When it returns, nothing of the exchange goes on.
// The outcomes are those of providers.Provider's Send.
func (c *Client) Do(ctx context.Context, call Call, r providers.Reporter) providers.Outcome {
	if ctx.Err() != nil {
		return retryable(providers.CodeAborted, "ended before anything was sent")
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &progress{wakeup: make(chan struct{}, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		out := c.survive(inner, call, p)
		p.tell(func(s *seen) { s.outcome = &out })
	}()
	// stop ends the exchange and returns how it stands then. Only now is it certain how far the request got.
	stop := func() seen {
		cancel()
		<-ended
		return p.look()
	}
	w := &watch{r: r, opts: c.opts, ack: time.NewTimer(c.opts.AckTimeout), total: time.NewTimer(c.opts.TotalTimeout)}
	defer w.stopTimers()

	for {
		var timeout *providers.Failure
		select {
		case <-p.wakeup:
		case <-ctx.Done():
			return w.aborted(p, p.look(), stop)
		case <-w.ack.C:
			timeout = &providers.Failure{Code: providers.CodeAckTimeout, Message: "no acknowledgement within " + c.opts.AckTimeout.String()}
		case <-w.idleC():
			timeout = &providers.Failure{Code: providers.CodeIdleTimeout, Message: "silence for " + c.opts.IdleTimeout.String()}
		case <-w.total.C:
			timeout = &providers.Failure{Code: providers.CodeTotalTimeout, Message: "not ended within " + c.opts.TotalTimeout.String()}
		case <-w.lingerC():
			s := stop()
			w.report(s)
			return w.late(s.outcome)
		}

		s := p.look()
		if timeout != nil && !w.stale(timeout, s) && s.outcome == nil {
			switch {
			case s.answered && s.ack == nil:
				// An error status whose body stalls: the status is judged with what came of the body.
				return *stop().outcome
			case !p.track.began():
				// Nothing was written yet. If something was after all when the exchange has stopped, it is unknown,
				// with nobody left to listen.
				if stop(); !p.track.began() {
					return retryable(providers.CodeUnreachable, "no connection to the provider: "+timeout.Message)
				}
				return providers.Outcome{Kind: providers.Unknown, Failure: timeout}
			}
			if c.opts.Linger <= 0 {
				stopped := stop()
				w.report(s)
				w.turnUnknown(timeout)
				w.report(stopped)
				return providers.Outcome{Kind: providers.Unknown, Failure: timeout, ProviderRequestID: w.requestID, Usage: stopped.usage()}
			}
			w.report(s)
			w.turnUnknown(timeout)
			continue
		}
		w.report(s)
		if s.outcome != nil {
			if ctx.Err() != nil {
				return w.aborted(p, s, stop)
			}
			<-ended
			return w.late(s.outcome)
		}
	}
}

// survive keeps a panic while an answer is read from ending the process and every other attempt with it. The adapter
// did not understand the answer, so nobody can tell what it was.
func (c *Client) survive(ctx context.Context, call Call, p *progress) (out providers.Outcome) {
	defer func() {
		if recover() == nil {
			return
		}
		if out = unknown(providers.CodeAdapter, "the adapter broke down while it read the answer"); !p.track.began() {
			out.Kind = providers.Failed
		}
	}()
	return c.roundTrip(ctx, call, p)
}

// aborted is the end by the caller's context. A handle that came at the same moment is told all the same, since somebody may
// ask by it.
func (w *watch) aborted(p *progress, s seen, stop func() seen) providers.Outcome {
	stopped := stop()
	if s.outcome != nil && s.outcome.Kind != providers.Unknown { // it was over already
		return *s.outcome
	}
	if !p.track.began() {
		return retryable(providers.CodeAborted, "ended before anything was sent")
	}
	w.acknowledge(stopped)
	out := unknown(providers.CodeAborted, "ended by us after the request began to be written")
	out.ProviderRequestID = w.requestID
	out.Usage = stopped.usage()
	return out
}

// watch holds the timers of one exchange and what the reporter was told.
type watch struct {
	r         providers.Reporter
	opts      Options
	ack       *time.Timer
	idle      *time.Timer
	total     *time.Timer
	linger    *time.Timer
	requestID string
	acked     bool
	unknown   *providers.Failure
}

func (w *watch) idleC() <-chan time.Time   { return channel(w.idle) }
func (w *watch) lingerC() <-chan time.Time { return channel(w.linger) }

func channel(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

func (w *watch) stopTimers() {
	for _, t := range []*time.Timer{w.ack, w.idle, w.total, w.linger} {
		if t != nil {
			t.Stop()
		}
	}
}

// stale says whether a timer and what it waited for came at the same moment; then what came counts. The total
// deadline is absolute.
func (w *watch) stale(timeout *providers.Failure, s seen) bool {
	switch timeout.Code {
	case providers.CodeAckTimeout:
		return s.answered
	case providers.CodeIdleTimeout:
		return s.life
	default:
		return false
	}
}

// report passes news on and starts the idle time-out anew. It does so after the reporter is done, whose slowness is
// not the provider's silence.
func (w *watch) report(s seen) {
	w.acknowledge(s)
	if w.unknown != nil {
		return
	}
	if s.answered {
		w.ack.Stop()
	}
	if s.life && w.acked {
		w.r.Progress()
	}
	switch {
	case s.answered && w.idle == nil:
		w.idle = time.NewTimer(w.opts.IdleTimeout)
	case s.life && w.idle != nil:
		w.idle.Reset(w.opts.IdleTimeout)
	}
}

// acknowledge tells the acknowledgement once, whenever it comes.
func (w *watch) acknowledge(s seen) {
	if s.ack == nil || w.acked {
		return
	}
	w.acked = true
	w.requestID = s.ack.ProviderRequestID
	if w.unknown != nil {
		providers.AcknowledgeLate(w.r, *s.ack)
		return
	}
	w.r.Acknowledged(*s.ack)
}

// turnUnknown leaves only the linger running.
func (w *watch) turnUnknown(f *providers.Failure) {
	w.unknown = f
	w.stopTimers()
	w.linger = time.NewTimer(w.opts.Linger)
	w.r.Unknown(*f)
}

// late returns the outcome, or the time-out that came before if the outcome knows no better.
func (w *watch) late(out *providers.Outcome) providers.Outcome {
	if w.unknown != nil && out.Kind == providers.Unknown {
		o := *out
		o.Failure = w.unknown
		return o
	}
	return *out
}
