// Package demo is a simulated provider: nothing leaves the process, and no model answers. It shows what Docket does
// when a printer jams, prints or falls silent, on a machine that has no key.
//
//   - demo/inkjet acknowledges and then jams: a definite error that is not retryable.
//   - demo/laser prints: a document made from the job's input by plain rules (see Print).
//   - demo/fax acknowledges and then stays silent until the idle time-out, and through the linger.
//
// Of a system prompt the simulation obeys one thing: where its last line is a JSON object that the line before tells to answer with
// and nothing else, that object is the answer (see Dictated).
//
// Finish reasons and request ids begin with "simulated". The usage counts words, not tokens.
package demo

import (
	"context"
	"strings"
	"time"

	"github.com/docket-gateway/docket/providers"
)

// Kind is the provider kind in the configuration.
const Kind = "demo"

// Version is the adapter version. It changes with the rules of Print and of Dictated.
const Version = "demo-simulated/2"

// Models of the demo.
const (
	Inkjet = "inkjet"
	Laser  = "laser"
	Fax    = "fax"
)

// DefaultDelay is how long each step of a simulated print takes, long enough for a watcher to see the states.
const DefaultDelay = 40 * time.Millisecond

// Config is the built-in provider that Docket starts with when no file says otherwise. Its time-outs are short, so that
// a fax's silence is worth watching.
func Config() providers.Config {
	c := providers.Defaults()
	c.Name, c.Kind = "demo", Kind
	c.AckTimeout, c.IdleTimeout, c.TotalTimeout, c.Linger = 5*time.Second, 5*time.Second, 30*time.Second, 5*time.Second
	for _, name := range []string{Inkjet, Laser, Fax} {
		c.Models = append(c.Models, providers.Model{Name: name, ContextWindow: 128000, MaxOutputTokens: 16384,
			PricePerMillion: providers.Price{Input: "0", Output: "0"}})
	}
	return c
}

// Provider simulates one configured provider.
type Provider struct {
	cfg   providers.Config
	delay time.Duration
}

var _ providers.Provider = (*Provider)(nil)

// New is the kind's factory.
func New(cfg providers.Config) (providers.Provider, error) { return NewWithDelay(cfg, DefaultDelay) }

// NewWithDelay is New with another delay for each step; 0 is none.
func NewWithDelay(cfg providers.Config, delay time.Duration) (*Provider, error) {
	for _, m := range cfg.Models {
		if m.Name != Inkjet && m.Name != Laser && m.Name != Fax {
			return nil, &providers.ConfigError{Path: "models", Problem: "the demo has the models inkjet, laser and fax only"}
		}
	}
	return &Provider{cfg: cfg, delay: delay}, nil
}

// AdapterVersion implements providers.Provider.
func (p *Provider) AdapterVersion() string { return Version }

// Send implements providers.Provider. Nothing is sent; the request counts as written at once, so that an end by ctx
// after the start is Unknown as it would be with a real provider.
func (p *Provider) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	if ctx.Err() != nil {
		return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{
			Code: providers.CodeAborted, Message: "ended before anything was sent", Retryable: true}}
	}
	s := &simulation{ctx: ctx, cfg: p.cfg, r: r, total: time.NewTimer(p.cfg.TotalTimeout), id: "simulated-" + req.AttemptID}
	defer s.total.Stop()

	if !s.pause(p.delay, p.cfg.AckTimeout, providers.CodeAckTimeout) {
		return s.end
	}
	s.acknowledge()
	switch req.Model {
	case Fax:
		s.pause(forever, p.cfg.IdleTimeout, providers.CodeIdleTimeout)
		return s.end
	case Inkjet:
		if !s.pause(p.delay, p.cfg.IdleTimeout, providers.CodeIdleTimeout) {
			return s.end
		}
		return s.outcome(providers.Outcome{Kind: providers.Failed, FinishReason: "simulated_jam", Failure: &providers.Failure{
			Code: providers.CodeJammed, Message: "paper jam (simulated)"}})
	case Laser:
		for range 2 {
			if !s.pause(p.delay, p.cfg.IdleTimeout, providers.CodeIdleTimeout) {
				return s.end
			}
			s.progress()
		}
		output, err := answer(req)
		if err != nil {
			return s.outcome(providers.Outcome{Kind: providers.Failed, FinishReason: "simulated_rejection", Failure: &providers.Failure{
				Code: providers.CodeBadRequest, Message: "the simulation cannot print this task: " + err.Error()}})
		}
		in, out := words(req.System, req.Prompt), words(string(output))
		if req.MaxOutputTokens > 0 && out > req.MaxOutputTokens {
			return s.outcome(providers.Outcome{Kind: providers.Failed, FinishReason: "simulated_length",
				Usage: &providers.Usage{InputTokens: &in, OutputTokens: &out}, Failure: &providers.Failure{
					Code: providers.CodeTruncated, Message: "the output is longer than the token limit (simulated)"}})
		}
		return s.outcome(providers.Outcome{Kind: providers.Completed, Output: output, FinishReason: "simulated",
			Usage: &providers.Usage{InputTokens: &in, OutputTokens: &out}})
	default:
		return s.outcome(providers.Outcome{Kind: providers.Failed, FinishReason: "simulated_rejection", Failure: &providers.Failure{
			Code: providers.CodeBadRequest, Message: "no such simulated model"}})
	}
}

// answer is what the system prompt dictates, else what the task's rule makes of the input.
func answer(req providers.Request) ([]byte, error) {
	if object, ok := Dictated(req.System); ok {
		return object, nil
	}
	return Print(req.Task, req.Input, req.Schema)
}

// words is the demo's stand-in for a count of tokens.
func words(texts ...string) int {
	n := 0
	for _, t := range texts {
		n += len(strings.Fields(t))
	}
	return n
}
