package contracts

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
)

// DefaultConcurrency is how many requests a run has under way at once.
const DefaultConcurrency = 4

// MaxRuns bounds the runs per case.
const MaxRuns = 100

var (
	// ErrUnknownTarget says that no configured provider serves the target.
	ErrUnknownTarget = errors.New("the target is not configured")
	// ErrInterrupted says that the run was stopped before it was over; nothing can be said about the target.
	ErrInterrupted = errors.New("the contract run was interrupted")
	// ErrMode says that the mode cannot be run.
	ErrMode = errors.New("the mode cannot be run")
)

// Endpoint is a target that can be asked.
type Endpoint struct {
	Target       providers.Target           // with its sender, its model's limits and its tokenizer
	ConfigDigest string                     // over the provider's configuration without secrets and the adapter's version
	ConfigParts  map[string]json.RawMessage // what that digest is made of, as providers.Registry.ConfigParts has it
}

// Targets finds endpoints by target.
type Targets interface {
	Endpoint(target string) (Endpoint, bool)
}

// Wires stand between an adapter and its provider, to record what is said or to say it again.
type Wires interface {
	// Open returns the endpoint over which one case's requests go in the mode, which is record or replay, those of a tokenizer that
	// asks the provider among them. The endpoint is of use until it is closed; closing says whether everything could be recorded or
	// replayed. A missing or stale recording is an error, of Open, of Close, or both. A ctx that has ended by then was interrupted:
	// nothing is whole.
	Open(ctx context.Context, s Suite, c Case, ep Endpoint, mode report.Mode) (Wire, error)
}

// Wire is one case's.
type Wire interface {
	Endpoint() Endpoint
	// Took is how long the request with this attempt id took when it was recorded; ok is false if the wire does not know better
	// than a clock.
	Took(attemptID string) (d time.Duration, ok bool)
	Close() error
}

// RoundTripper takes a case's input through a whole Docket of its own, with its own database: created and read back over
// GraphQL, sent to the endpoint by a worker.
type RoundTripper interface {
	RoundTrip(ctx context.Context, s Suite, c Case, ep Endpoint) (Trip, error)
}

// Trip is what came of a round trip.
type Trip struct {
	State    string             // of the job at last
	Code     string             // of its error
	Answered []byte             // what the provider answered, byte for byte; nil if it did not
	Read     []byte             // the job's result as GraphQL gives it; nil if there is none
	Outcome  *providers.Outcome // how the request ended; nil if none was made
}

// FaultInjector shows how an adapter classifies its provider's failures.
type FaultInjector interface {
	// Inject returns one check for each kind of failure, CheckFaults with an aspect. An error means that nothing could be injected.
	Inject(ctx context.Context, s Suite, ep Endpoint, mode report.Mode) ([]report.Check, error)
}

// FaultCutOff is the aspect of the one fault for which a request goes to the provider, unless the run replays: its answer is
// cut off in the middle, so that nobody knows what it cost.
const FaultCutOff = "cut_off"

// Deps is what a runner needs. Now is the clock, time.Now if nil; RanBy names who runs it in the results.
type Deps struct {
	Targets    Targets
	Wires      Wires // nil: only live can be run
	RoundTrips RoundTripper
	Faults     FaultInjector
	RanBy      string
	Now        func() time.Time
}

// Runner runs suites at targets.
type Runner struct{ deps Deps }

// NewRunner returns a runner.
func NewRunner(d Deps) *Runner {
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Runner{deps: d}
}

// stepKey is where a context keeps its step.
type stepKey struct{}

// WithStep returns a context whose requests are made in the course of the step.
func WithStep(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, stepKey{}, name)
}

// StepOf tells in the course of which step of its case a request is made: "run 1", "canary", "round trip". It is empty where
// the context did not come through.
func StepOf(ctx context.Context) string {
	name, _ := ctx.Value(stepKey{}).(string)
	return name
}

// Options of one run.
type Options struct {
	Mode        report.Mode // empty: live
	Runs        int         // per case; 0: as the task's contract says
	Concurrency int         // requests at once; 0: DefaultConcurrency
	Slots       *Slots      // shared with other runs, instead of Concurrency; nil: own ones
	Progress    Progress    // may be nil
	Spending    *Spending   // nil: no cap
	Journal     Journal     // of live runs, the others ignore it: a recording is made whole; nil: nothing is taken up again
}

// Progress hears of a run from several goroutines.
type Progress interface {
	// Begins is called once, with the number of steps of the run.
	Begins(task, target string, steps int)
	// Done is called at the end of each step.
	Done(task, target string)
}

// Journal keeps answers, so that a run that was stopped can be taken up again. It is called from several goroutines. A step's name
// holds everything that its answer depends on: the task, target and basis of the result, the mode and the number of runs.
type Journal interface {
	Load(step string) (Answer, bool)
	Save(step string, a Answer) error
}

// Run collects what there is to be known of the suite at the target and judges it. A target that answers badly is a result; an error
// means that nothing can be said about it: ErrUnknownTarget, ErrMode, ErrInterrupted, ErrMaxCost, a recording that is missing or stale,
// or an assertion that does not give true or false.
func (r *Runner) Run(ctx context.Context, s Suite, target string, o Options) (report.Result, *Evidence, error) {
	ev, err := r.Collect(ctx, s, target, o)
	if err != nil {
		return report.Result{}, nil, err
	}
	res, err := Judge(ctx, ev)
	if err != nil {
		return report.Result{}, nil, err
	}
	return res, ev, nil
}
