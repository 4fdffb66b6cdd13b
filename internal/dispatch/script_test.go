package dispatch

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers"
)

const good = `{"answer":"yes"}`

// script is a provider in memory that does what a test says, and keeps the attempts of all requests in order.
type script struct {
	do func(c *call) providers.Outcome

	mu    sync.Mutex
	sent  []string
	calls chan *call // every request, as it arrives
}

// call is one request under way.
type call struct {
	providers.Request

	ctx    context.Context //nolint:containedctx // handed to the test
	r      providers.Reporter
	number int // from 1
}

// newScript answers every request well if do is nil.
func newScript(do func(c *call) providers.Outcome) *script {
	if do == nil {
		do = func(*call) providers.Outcome { return ok() }
	}
	return &script{do: do, calls: make(chan *call, 1000)}
}

func (s *script) AdapterVersion() string { return "script/1" }

func (s *script) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	s.mu.Lock()
	s.sent = append(s.sent, req.AttemptID)
	c := &call{Request: req, ctx: ctx, r: r, number: len(s.sent)}
	s.mu.Unlock()
	s.calls <- c
	return s.do(c)
}

// requests returns the attempts of all requests so far.
func (s *script) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.sent...)
}

// next waits for the next request.
func (s *script) next(t *testing.T) *call {
	t.Helper()
	return await.Receive(t, "request", s.calls)
}

// once requires that each of the requests was sent once, and nothing else.
func (s *script) once(t *testing.T, attempts ...string) {
	t.Helper()
	require.ElementsMatch(t, attempts, s.requests())
}

func (c *call) ack() {
	c.r.Acknowledged(providers.Acknowledgement{ProviderRequestID: "req-" + c.AttemptID})
}

// until waits for the signal; if the request is stopped first it returns false.
func (c *call) until(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// held acknowledges and answers well after the signal, unless it is stopped.
func held(signal <-chan struct{}) func(c *call) providers.Outcome {
	return func(c *call) providers.Outcome {
		c.ack()
		if !c.until(signal) {
			return aborted()
		}
		return ok()
	}
}

func ok() providers.Outcome {
	return providers.Outcome{Kind: providers.Completed, Output: []byte(good), Usage: &providers.Usage{InputTokens: new(3), OutputTokens: new(5)}}
}

func no(retryable bool) providers.Outcome {
	return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{Code: providers.CodeOverloaded, Message: "no", Retryable: retryable}}
}

func aborted() providers.Outcome {
	return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: providers.CodeAborted, Message: "ended by us"}}
}

func timedOut() providers.Failure {
	return providers.Failure{Code: providers.CodeIdleTimeout, Message: "silence"}
}
