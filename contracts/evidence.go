package contracts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/providers"
)

// Evidence is everything that a run collected at one target, before it is judged.
type Evidence struct {
	Suite                 Suite
	Target                string
	Endpoint              Endpoint
	Mode                  report.Mode
	RunCount              int // per case
	RanBy                 string
	StartedAt, FinishedAt time.Time
	Cases                 []CaseEvidence
	Faults                []report.Check
}

// CaseEvidence is what was collected for one case.
type CaseEvidence struct {
	Case         Case
	Prompt       tasks.Prompt
	PromptChecks []report.Check
	Sendable     bool // the prompt renders and fits; else nothing below was asked
	Runs         []Answer
	Canary       Canary
	Answer       Answer // to the canary
	Trip         *Trip  // nil: round trips cannot be made
}

// Answer is what came of one request.
type Answer struct {
	Outcome  providers.Outcome  `json:"outcome"`
	Unknown  *providers.Failure `json:"unknown,omitempty"` // a time-out: within a job it would have blocked the route, whatever came later
	Duration time.Duration      `json:"duration"`
	Trip     *Trip              `json:"trip,omitempty"` // of a round trip
	At       time.Time          `json:"at"`             // when it was asked for
}

// Completed says whether a complete answer came in time.
func (a Answer) Completed() bool { return a.Unknown == nil && a.Outcome.Kind == providers.Completed }

// failure is why not.
func (a Answer) failure() providers.Failure {
	switch {
	case a.Unknown != nil:
		return *a.Unknown
	case a.Outcome.Failure != nil:
		return *a.Outcome.Failure
	}
	return providers.Failure{Code: "UNCLASSIFIED", Message: "the adapter gave no reason"}
}

// collection is one run under way.
type collection struct {
	*Runner
	Options
	ev     *Evidence
	scope  string // of the steps in the journal
	cancel context.CancelCauseFunc
	halted atomic.Pointer[error]
}

// Collect asks the target everything that the checks need. Each step is exactly one request to the model.
func (r *Runner) Collect(ctx context.Context, s Suite, target string, o Options) (*Evidence, error) {
	switch {
	case o.Mode == "":
		o.Mode = report.Live
	case o.Mode != report.Live && o.Mode != report.Record && o.Mode != report.Replay, o.Mode != report.Live && r.deps.Wires == nil:
		return nil, fmt.Errorf("%w: %q", ErrMode, o.Mode)
	}
	ep, ok := r.deps.Targets.Endpoint(target)
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrUnknownTarget, target)
	}
	if o.Mode != report.Live {
		o.Journal = nil // what it has would be missing in the recording
	}
	if o.Runs == 0 {
		o.Runs = s.Task.Contract.Runs
	}
	if o.Slots == nil {
		o.Slots = NewSlots(o.Concurrency)
	}
	scope, err := scopeOf(s, ep, target, o)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &collection{Runner: r, Options: o, scope: scope, cancel: cancel, ev: &Evidence{
		Suite: s, Target: target, Endpoint: ep, Mode: o.Mode, RunCount: o.Runs, RanBy: r.deps.RanBy, StartedAt: r.deps.Now().UTC(),
		Cases: make([]CaseEvidence, len(s.Cases)),
	}}
	if o.Progress != nil {
		o.Progress.Begins(s.Task.Name, target, len(s.Cases)*c.steps()+1) // and the faults
	}
	var wg sync.WaitGroup
	for i, one := range s.Cases {
		wg.Go(func() { c.collectCase(within, &c.ev.Cases[i], one) })
	}
	wg.Go(func() { c.collectFaults(within) })
	wg.Wait()
	switch halted, cause := c.halted.Load(), context.Cause(within); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
	case halted != nil: // whatever else is missing is missing for this reason
		return nil, *halted
	case cause != nil:
		return nil, cause
	}
	c.ev.FinishedAt = r.deps.Now().UTC()
	return c.ev, nil
}

// scopeOf names everything that the answers of a run depend on, so that no journal gives those of another version.
func scopeOf(s Suite, ep Endpoint, target string, o Options) (string, error) {
	basis, err := s.Basis(ep)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s at %s, %s, %s, %d runs: ", s.Task.Name, target, basis.Digest(target), o.Mode, o.Runs), nil
}

// halt begins nothing more, and lets what is under way come to its end: it is paid for.
func (c *collection) halt(err error) { c.halted.CompareAndSwap(nil, &err) }

// collectCase ends the whole collection if something keeps the case from being asked.
func (c *collection) collectCase(ctx context.Context, into *CaseEvidence, one Case) {
	if err := c.askCase(ctx, into, one); err != nil {
		c.cancel(fmt.Errorf("case %q: %w", one.Name, err))
	}
}

func (c *collection) askCase(ctx context.Context, into *CaseEvidence, one Case) (err error) {
	s := c.ev.Suite
	into.Case = one
	ep, took := c.ev.Endpoint, func(string) (time.Duration, bool) { return 0, false }
	if c.Mode != report.Live {
		open, interrupt := context.WithCancel(ctx)
		defer interrupt()
		w, failed := c.deps.Wires.Open(open, s, one, ep, c.Mode)
		if failed != nil {
			return failed
		}
		defer func() {
			if c.halted.Load() != nil {
				interrupt() // a recording of a part is none
			}
			err = errors.Join(err, w.Close()) // err is what the function returns
		}()
		ep, took = w.Endpoint(), w.Took
	}
	release, ok := c.Slots.take(ctx, ep.Target) // counting tokens may be a request too
	if !ok {
		return nil
	}
	into.Prompt, into.PromptChecks, into.Sendable = checkPrompt(ctx, s, one, ep)
	release()
	if !into.Sendable {
		c.done(c.steps())
		return nil
	}
	into.Runs = make([]Answer, c.ev.RunCount)
	into.Canary = newCanary(s.Task, one)
	var wg sync.WaitGroup
	for n := range c.ev.RunCount {
		wg.Go(func() {
			into.Runs[n] = c.step(ctx, one, fmt.Sprintf("run %d", n+1), func(ctx context.Context) Answer { return c.send(ctx, ep, runRequest(s, one, into.Prompt, ep), took) })
		})
	}
	wg.Go(func() {
		into.Answer = c.step(ctx, one, "canary", func(ctx context.Context) Answer {
			return c.send(ctx, ep, into.Canary.request(s, one, into.Prompt, ep), took)
		})
	})
	if c.deps.RoundTrips != nil {
		wg.Go(func() {
			into.Trip = c.step(ctx, one, "round trip", func(ctx context.Context) Answer {
				trip, err := c.deps.RoundTrips.RoundTrip(ctx, s, one, ep)
				if err != nil && ctx.Err() == nil {
					c.cancel(fmt.Errorf("case %q, round trip: %w", one.Name, err))
				}
				a := Answer{Trip: &trip}
				if trip.Outcome != nil {
					a.Outcome = *trip.Outcome
				}
				return a
			}).Trip
		})
	}
	wg.Wait()
	return nil
}

// steps is the number of a case's steps.
func (c *collection) steps() int {
	if c.deps.RoundTrips == nil {
		return c.ev.RunCount + 1
	}
	return c.ev.RunCount + 2
}

func (c *collection) done(steps int) {
	if c.Progress == nil {
		return
	}
	for range steps {
		c.Progress.Done(c.ev.Suite.Task.Name, c.ev.Target)
	}
}

// step does one thing that costs a request, unless the journal has it already. Nothing is begun once the collection has ended.
func (c *collection) step(ctx context.Context, one Case, name string, ask func(context.Context) Answer) Answer {
	release, ok := c.Slots.take(ctx, c.ev.Endpoint.Target)
	if !ok {
		return Answer{}
	}
	defer release()
	if ctx.Err() != nil || c.halted.Load() != nil {
		return Answer{}
	}
	defer c.done(1)
	key := c.scope + one.Name + ": " + name
	if c.Journal != nil {
		if a, ok := c.Journal.Load(key); ok && c.fresh(a) {
			return a
		}
	}
	settle, err := c.Spending.reserve(c.ev.Suite.Task, c.ev.Endpoint.Target, one)
	if err != nil {
		c.halt(err)
		return Answer{}
	}
	begun := c.deps.Now().UTC()
	a := ask(WithStep(ctx, name))
	a.At = begun
	settle(a.Outcome.Usage)
	// What an interruption ended is no answer.
	if c.Journal != nil && ctx.Err() == nil {
		if err := c.Journal.Save(key, a); err != nil {
			c.cancel(err)
		}
	}
	return a
}

// resumable is how long an answer is kept for a run that is taken up again, if the task's pass lasts at least twice as long.
const resumable = 24 * time.Hour

// fresh says whether an answer of before may count: a result is as old as it is stored, and must not be one of long ago.
func (c *collection) fresh(a Answer) bool {
	age := c.deps.Now().Sub(a.At)
	return age >= 0 && age <= min(resumable, c.ev.Suite.Task.Contract.MaxAge/2)
}

func (c *collection) collectFaults(ctx context.Context) {
	if c.deps.Faults == nil {
		c.ev.Faults = []report.Check{{Name: report.CheckFaults, Status: report.NotRun, Message: "this runner injects no faults"}}
	} else {
		if err := c.reserveFaults(); err != nil {
			c.halt(err)
			return
		}
		checks, err := c.deps.Faults.Inject(ctx, c.ev.Suite, c.ev.Endpoint, c.Mode)
		if err != nil && ctx.Err() == nil {
			c.cancel(fmt.Errorf("faults: %w", err))
		}
		c.ev.Faults = checks
	}
	c.done(1)
}

// reserveFaults sets the most aside that the request of FaultCutOff can cost. It stays so, since what it did cost is not told.
func (c *collection) reserveFaults() error {
	s := c.ev.Suite
	if c.Mode == report.Replay || len(s.Cases) == 0 || c.ev.Endpoint.Target.Config.BaseURL == "" {
		return nil
	}
	_, err := c.Spending.reserve(s.Task, c.ev.Endpoint.Target, s.Cases[0])
	return err
}

// runRequest is the case as a job's attempt would send it.
func runRequest(s Suite, one Case, prompt tasks.Prompt, ep Endpoint) providers.Request {
	return providers.Request{
		AttemptID:       "contract-" + rand.Text(),
		Task:            s.Task.Name,
		Model:           ep.Target.Model.Name,
		System:          prompt.System,
		Prompt:          prompt.User,
		Input:           one.Input,
		Schema:          s.Task.OutputSchemaJSON,
		Temperature:     s.Task.Temperature,
		MaxOutputTokens: ep.Target.Model.OutputBudget(s.Task.MaxOutputTokens),
	}
}

// send makes one request. It goes past the circuit breaker of internal/dispatch: a contract run is asked for, and says what it found.
func (c *collection) send(ctx context.Context, ep Endpoint, req providers.Request, took func(string) (time.Duration, bool)) Answer {
	// Nobody waits for late answers here, so an unknown outcome ends the request instead of letting it linger.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &listener{stop: cancel}
	started := c.deps.Now()
	out := ep.Target.Sender.Send(ctx, req, l)
	a := Answer{Outcome: out, Unknown: l.unknown, Duration: c.deps.Now().Sub(started)}
	if d, ok := took(req.AttemptID); ok {
		a.Duration = d
	}
	return a
}

// listener hears of a request's progress. Send calls it from one goroutine and returns after its last call.
type listener struct {
	stop    context.CancelFunc
	unknown *providers.Failure
}

func (l *listener) Acknowledged(providers.Acknowledgement) {}
func (l *listener) Progress()                              {}
func (l *listener) Unknown(f providers.Failure) {
	l.unknown = &f
	l.stop()
}
