package contracts_test

import (
	"context"
	"sync"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/providers"
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

// always returns a sender that completes every request with the output.
func always(output string) *fakeSender {
	return &fakeSender{answer: func(context.Context, providers.Request, providers.Reporter) providers.Outcome {
		return providers.Outcome{Kind: providers.Completed, Output: []byte(output)}
	}}
}

// fakeTargets serves one sender at every target but "nobody/there".
type fakeTargets struct {
	sender providers.Provider
	limits providers.Model
}

func (f fakeTargets) Endpoint(target string) (contracts.Endpoint, bool) {
	m := f.limits
	m.Name = "model-of-" + target
	return contracts.Endpoint{Target: providers.Target{Sender: f.sender, Model: m}, ConfigDigest: "sha256:config"}, target != "nobody/there"
}
