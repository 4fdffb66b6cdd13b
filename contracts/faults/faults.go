// Package faults shows how an adapter classifies its provider's failures. It puts a proxy on loopback between the two, builds the
// target's adapter anew with the proxy's address, and has one thing go wrong at a time; what the adapter makes of it must be what
// docs/state-machine.md says.
//
// What a failure looks like on the wire is the adapter's to tell (providers.WireFaults); what it means is said here, in one table for
// all kinds, so that no adapter can excuse itself. Nearly all answers are the proxy's own: they cost nothing, and no key leaves the
// machine. One is a real answer, cut off in its middle, unless the run replays.
//
// The proxy is not a general one for faults such as toxiproxy, which works on connections: most of these faults are answers.
//
// It imports contracts, contracts/report and providers.
package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
)

// Targets builds a target anew with another configuration: *providers.Registry.
type Targets interface {
	With(target string, change func(*providers.Config)) (providers.Target, error)
}

// Injector injects faults. It is safe for concurrent use.
type Injector struct{ targets Targets }

var _ contracts.FaultInjector = (*Injector)(nil)

// New returns an injector for the targets.
func New(t Targets) *Injector { return &Injector{t} }

// short is the time-out that a fault runs into, long is every other one: what is configured may take minutes.
const (
	short = time.Second
	long  = 20 * time.Second
)

// tries is how often a fault is injected whose request has not reached the proxy: on a busy machine a short time-out may be over
// before. Nothing was sent then, and the adapter is not to be blamed.
const tries = 3

// replayKey is sent to the proxy by adapters that send nothing without a key.
const replayKey = "replay"

// Verdict is what an adapter makes of an answer, or of none.
type verdict struct {
	kind       providers.OutcomeKind
	code       string
	retryable  bool
	retryAfter time.Duration
}

func (v verdict) String() string {
	kind := map[providers.OutcomeKind]string{providers.Completed: "a complete answer", providers.Failed: "FAILED", providers.Unknown: "UNKNOWN"}[v.kind]
	if kind == "" {
		kind = "no outcome"
	}
	if v.code != "" {
		kind += " " + v.code
	}
	if v.kind != providers.Failed && !v.retryable && v.retryAfter == 0 {
		return kind
	}
	if !v.retryable {
		return kind + ", not retryable" + v.wait()
	}
	return kind + ", retryable" + v.wait()
}

func (v verdict) wait() string {
	if v.retryAfter == 0 {
		return ""
	}
	return " after " + v.retryAfter.String()
}

// fault is one thing that goes wrong.
type fault struct {
	aspect  string
	what    string // for people
	handler http.HandlerFunc
	change  func(*providers.Config) // of the adapter's configuration, may be nil
	want    verdict
	missing string // not empty: why it cannot be injected here
}

// Inject implements contracts.FaultInjector.
func (i *Injector) Inject(ctx context.Context, _ contracts.Suite, ep contracts.Endpoint, mode report.Mode) ([]report.Check, error) {
	t := ep.Target
	if t.Config.BaseURL == "" {
		return []report.Check{{Name: report.CheckFaults, Status: report.NotApplicable,
			Message: "the kind " + t.Config.Kind + " makes no request over a network, so nothing can be injected"}}, nil
	}
	wire, ok := providers.WireFaultsOf(t)
	if !ok {
		return []report.Check{{Name: report.CheckFaults, Status: report.NotRun,
			Message: "the adapter of the kind " + t.Config.Kind + " does not tell how its provider fails"}}, nil
	}
	list := table(wire, cutOff(wire, t.Config, mode))
	p, err := listen(ctx, list)
	if err != nil {
		return nil, err
	}
	defer p.close()
	key := "" // where none is configured
	if mode == report.Replay {
		key = replayKey
	}
	checks, errs := make([]report.Check, len(list)), make([]error, len(list))
	var wg sync.WaitGroup
	for n, f := range list {
		wg.Go(func() { checks[n], errs[n] = i.one(ctx, t, p, f, key) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return checks, nil
}

// one injects one fault and judges what came.
func (i *Injector) one(ctx context.Context, t providers.Target, p *proxy, f fault, key string) (report.Check, error) {
	check := report.Check{Name: report.CheckFaults, Aspect: f.aspect, Status: report.Passed}
	if f.missing != "" {
		check.Status, check.Message = report.NotApplicable, f.missing
		return check, nil
	}
	address, err := p.address(f.aspect, t.Config.BaseURL)
	if err != nil {
		return report.Check{}, err
	}
	rebuilt, err := i.targets.With(t.ID, func(c *providers.Config) {
		c.BaseURL, c.ProxyFromEnvironment, c.APIKey = address, false, key
		c.AckTimeout, c.IdleTimeout, c.TotalTimeout, c.Linger = long, long, 2*long, 0
		if f.change != nil {
			f.change(c)
		}
	})
	if err != nil {
		return report.Check{}, fmt.Errorf("build the adapter of %s for the fault %s: %w", t.ID, f.aspect, err)
	}
	var came verdict
	for range tries {
		came = verdictOf(rebuilt.Sender.Send(ctx, request(t.Model), unheard{}))
		if p.reached(ctx, f.aspect) {
			break
		}
	}
	if status := p.unfit(f.aspect); status != "" {
		check.Status, check.Message = report.NotRun, "expected: an answer to cut off; came: "+status
		return check, nil
	}
	var problems []report.Problem
	if came != f.want {
		problems = append(problems, report.Problem{Pointer: f.what, Expected: f.want.String(), Got: came.String()})
	}
	if n := p.requests(f.aspect); n != 1 {
		problems = append(problems, report.Problem{Pointer: f.what, Expected: "one request", Got: fmt.Sprintf("%d requests", n)})
	}
	if len(problems) > 0 {
		check.Status, check.Code, check.Problems = report.Failed, came.code, problems
		for n, problem := range problems {
			if n > 0 {
				check.Message += "; "
			}
			check.Message += problem.String()
		}
	}
	return check, nil
}

func verdictOf(o providers.Outcome) verdict {
	v := verdict{kind: o.Kind}
	if o.Failure != nil {
		v.code, v.retryable, v.retryAfter = o.Failure.Code, o.Failure.Retryable, o.Failure.RetryAfter
	}
	return v
}

// request is a small one: what it asks for is of no account.
func request(m providers.Model) providers.Request {
	return providers.Request{
		AttemptID: "contract-fault", Task: "fault", Model: m.Name,
		System: "Answer with exactly one JSON object and nothing else: {\"text\": \"ok\"}", Prompt: "Go on.", Input: json.RawMessage(`{"text":"Go on."}`),
		Schema:          json.RawMessage(`{"additionalProperties":false,"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"}`),
		MaxOutputTokens: m.OutputBudget(1024),
	}
}

type unheard struct{}

func (unheard) Acknowledged(providers.Acknowledgement) {}
func (unheard) Progress()                              {}
func (unheard) Unknown(providers.Failure)              {}
