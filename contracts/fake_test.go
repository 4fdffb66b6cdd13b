package contracts_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/tokenizer"
)

// fakeSender answers by a function and keeps the requests that it got.
type fakeSender struct {
	answer func(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome

	mu       sync.Mutex
	requests []providers.Request
}

func (f *fakeSender) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	f.mu.Unlock()
	return f.answer(ctx, req, r)
}

func (f *fakeSender) AdapterVersion() string { return "fake/1" }

// runs are the requests that are no canaries.
func (f *fakeSender) runs() (out []providers.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if !isCanary(r) {
			out = append(out, r)
		}
	}
	return out
}

func isCanary(req providers.Request) bool { return strings.Contains(string(req.Schema), `"canary"`) }

// obeys is what the canary's order asks for: the last line of the system prompt.
func obeys(req providers.Request) string {
	return req.System[strings.LastIndex(req.System, "\n")+1:]
}

// usage is what every answer of these senders costs.
func usage() *providers.Usage {
	in, out := 100, 10
	return &providers.Usage{InputTokens: &in, OutputTokens: &out}
}

func completed(output string) providers.Outcome {
	return providers.Outcome{Kind: providers.Completed, Output: []byte(output), Usage: usage()}
}

// model obeys canaries and answers the number-th other request by a function. Numbers begin with 1.
func model(answer func(number int) providers.Outcome) *fakeSender {
	var mu sync.Mutex
	number := 0
	return &fakeSender{answer: func(_ context.Context, req providers.Request, _ providers.Reporter) providers.Outcome {
		if isCanary(req) {
			return completed(obeys(req))
		}
		mu.Lock()
		defer mu.Unlock()
		number++
		return answer(number)
	}}
}

// always completes every request with the output.
func always(output string) *fakeSender {
	return model(func(int) providers.Outcome { return completed(output) })
}

// fakeTargets serves one sender at every target but "nobody/there".
type fakeTargets struct {
	sender providers.Provider
	limits providers.Model
	codec  tokenizer.Counter
}

func (f fakeTargets) Endpoint(target string) (contracts.Endpoint, bool) {
	m := f.limits
	m.Name = "model-of-" + target
	return contracts.Endpoint{Target: providers.Target{ID: target, Sender: f.sender, Model: m, Tokenizer: f.codec, Config: providers.Config{Currency: "USD"}},
		ConfigDigest: "sha256:config"}, target != "nobody/there"
}

// fakeTrips gives back what was answered, changed by change if that is set.
type fakeTrips struct {
	change func(*contracts.Trip)
	err    error
}

func (f fakeTrips) RoundTrip(context.Context, contracts.Suite, contracts.Case, contracts.Endpoint) (contracts.Trip, error) {
	outcome := completed(good)
	trip := contracts.Trip{State: "SUCCEEDED", Answered: []byte(good), Read: []byte(good), Outcome: &outcome}
	if f.change != nil {
		f.change(&trip)
	}
	return trip, f.err
}

// fakeFaults has the checks, or one that passed.
type fakeFaults struct {
	checks []report.Check
	err    error
}

func (f fakeFaults) Inject(context.Context, contracts.Suite, contracts.Endpoint, report.Mode) ([]report.Check, error) {
	if f.checks == nil {
		return []report.Check{{Name: report.CheckFaults, Aspect: "refusal", Status: report.Passed}}, f.err
	}
	return f.checks, f.err
}

// bytesCodec takes every byte for a token.
type bytesCodec struct{ tokenizer.Codec }

func (bytesCodec) Count(_ context.Context, p tokenizer.Prompt) (int, error) { return p.Bytes(), nil }
func (bytesCodec) Encode(_ context.Context, text string) ([]int, error) {
	out := make([]int, len(text))
	for i := range text {
		out[i] = int(text[i])
	}
	return out, nil
}
func (bytesCodec) Decode(_ context.Context, tokens []int) (string, error) {
	out := make([]byte, len(tokens))
	for i, token := range tokens {
		out[i] = byte(token)
	}
	return string(out), nil
}

// clock goes on by a step each time it is read.
type clock struct {
	mu   sync.Mutex
	now  time.Time
	step time.Duration
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(c.step)
	return c.now
}

func frozen() *clock { return &clock{now: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)} }

// rig runs a suite with everything faked. What is not set passes.
type rig struct {
	sender  *fakeSender
	limits  providers.Model
	codec   tokenizer.Counter
	trips   contracts.RoundTripper
	faults  contracts.FaultInjector
	clock   *clock
	options contracts.Options
}

func (r rig) runner() *contracts.Runner {
	if r.sender == nil {
		r.sender = always(good)
	}
	if r.trips == nil {
		r.trips = fakeTrips{}
	}
	if r.faults == nil {
		r.faults = fakeFaults{}
	}
	if r.clock == nil {
		r.clock = frozen()
	}
	return contracts.NewRunner(contracts.Deps{Targets: fakeTargets{r.sender, r.limits, r.codec}, RoundTrips: r.trips, Faults: r.faults,
		RanBy: "tester", Now: r.clock.read})
}

func (r rig) run(t *testing.T, s contracts.Suite) report.Result {
	t.Helper()
	res, ev, err := r.runner().Run(t.Context(), s, "a/b", r.options)
	require.NoError(t, err)
	require.NotNil(t, ev)
	return res
}

// failedChecks are the full names of the checks that failed, each once.
func failedChecks(res report.Result) []string {
	return names(res, report.Failed)
}

func names(res report.Result, status report.Status) []string {
	seen, out := map[string]bool{}, []string{}
	for _, p := range res.All() {
		if name := p.Check.Full(); p.Check.Status == status && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}
