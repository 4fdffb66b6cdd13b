package roundtrip

import (
	"context"
	"strings"
	"sync"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/internal/tracecontext"
	"github.com/docket-gateway/docket/providers"
)

// provider is the only one of a Docket. It sends each request with the sender of the trip that the request belongs to: every case
// may have its own, which records or replays.
type provider struct {
	version string

	mu    sync.Mutex
	calls map[string]*call // by trace
}

// call is the request of one trip. There is one at most.
type call struct {
	sender providers.Provider
	step   string // of the contract run, which the worker's context does not know

	mu      sync.Mutex
	stop    context.CancelFunc // nil: nothing was sent
	done    chan struct{}
	outcome providers.Outcome
}

func (p *provider) expect(trace string, sender providers.Provider, step string) *call {
	c := &call{sender: sender, step: step, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[trace] = c
	return c
}

func (p *provider) forget(trace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, trace)
}

// AdapterVersion implements providers.Provider.
func (p *provider) AdapterVersion() string { return p.version }

// Send implements providers.Provider.
func (p *provider) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	p.mu.Lock()
	c := p.calls[tracecontext.TraceID("", req.Traceparent)]
	p.mu.Unlock()
	if c == nil {
		return notSent("the trip is over")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.begin(cancel) {
		return notSent("a trip has one request")
	}
	defer close(c.done) // also in a panic, which the worker recovers
	c.outcome = providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: providers.CodeAdapter, Message: "the adapter broke down"}}
	// Nobody is to look for this attempt in a database: its own will not be there.
	req.AttemptID = "contract-" + strings.TrimPrefix(req.AttemptID, "att_")
	l := &listener{Reporter: r, stop: cancel}
	out := c.sender.Send(contracts.WithStep(ctx, c.step), req, l)
	if l.unknown != nil { // what ended it after that was our doing
		out = providers.Outcome{Kind: providers.Unknown, Failure: l.unknown, Usage: out.Usage, ProviderRequestID: out.ProviderRequestID}
	}
	c.outcome = out
	return out
}

func notSent(why string) providers.Outcome {
	return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{Code: providers.CodeNotSent, Message: why}}
}

func (c *call) begin(stop context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		return false
	}
	c.stop = stop
	return true
}

// end ends the request, should it still be under way, and returns what came of it; nil if there was none.
func (c *call) end() *providers.Outcome {
	c.mu.Lock()
	stop := c.stop
	if stop == nil {
		c.stop = func() {} // none may begin any more
	}
	c.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	<-c.done
	return &c.outcome
}

// listener ends a request whose outcome is unknown, instead of letting it linger.
type listener struct {
	providers.Reporter

	stop    context.CancelFunc
	unknown *providers.Failure
}

func (l *listener) AcknowledgedLate(a providers.Acknowledgement) {
	providers.AcknowledgeLate(l.Reporter, a)
}

func (l *listener) Unknown(f providers.Failure) {
	l.unknown = &f
	l.Reporter.Unknown(f)
	l.stop()
}
