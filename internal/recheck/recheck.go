// Package recheck looks after gates while nobody else does: it notices when they open or close, and runs contracts at real targets
// before their results expire.
//
// Both are entries of the queue, so of all processes one does the work. River's leader adds a look each minute; the look adds a
// run for each result that is about to expire.
//
// It imports contracts, contracts/gate and internal/queue, never graph or internal/dispatch.
package recheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/tasks"
)

// Scope says which targets of a task are run again.
type Scope string

// The scopes.
const (
	Off       Scope = "off"
	Fallbacks Scope = "fallbacks"
	Route     Scope = "route" // the primary too
)

// Policy of live runs that nobody asked for. They cost money.
type Policy struct {
	Scope   Scope
	Before  time.Duration // a pass is renewed so long before it expires, but not before half of its time is over
	MaxCost string        // decimal; of one run at one target; empty: no cap
}

// Runner is *contracts.Runner.
type Runner interface {
	Run(ctx context.Context, s contracts.Suite, target string, o contracts.Options) (report.Result, *contracts.Evidence, error)
}

// Deps is what a service needs.
type Deps struct {
	// Suites are those of the versions in use: the configured ones, and the ones that open jobs hold.
	Suites func(ctx context.Context) ([]contracts.Suite, error)
	// Real says whether a target is configured here and not simulated.
	Real   func(target string) bool
	Check  func(ctx context.Context, task *tasks.Definition, target string) (gate.Decision, error)
	Look   func(ctx context.Context, task *tasks.Definition, target string) (changed bool, err error)
	Record func(ctx context.Context, r report.Result) error
	Runner Runner
	Logger *slog.Logger
	Now    func() time.Time
}

// errStillDue says that a run was made and stored, and changed nothing at its gate.
var errStillDue = errors.New("the gate asks for another run in spite of its result")

const (
	lookQueue, runQueue = "gates", "contracts"
	lookEvery           = time.Minute
	// runFor bounds one run. That of a process that died is left alone until then.
	runFor = time.Hour
	// minRetry is how long after a run that said nothing the next one follows at the earliest: each may cost something.
	minRetry = time.Hour
)

// Service is the part of the queue.
type Service struct {
	policy Policy
	deps   Deps
	client *queue.Client
	life   context.Context //nolint:containedctx // of runs, which Stop ends before the queue waits for them
	end    context.CancelFunc

	looked chan struct{} // a look is over; for tests, never waited for
}

// New returns a service. What it does begins with the queue.
func New(p Policy, d Deps) *Service {
	s := &Service{policy: p, deps: d, looked: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// lookArgs is an entry to look at all gates.
type lookArgs struct{}

func (lookArgs) Kind() string { return "gates_look" }

// runArgs is an entry to run one contract.
type runArgs struct {
	TaskVersion string `json:"task_version"`
	Target      string `json:"target"`
}

func (runArgs) Kind() string { return "contract_recheck" }

// unfinished is for entries of which one is enough until it is worked on.
var unfinished = []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
	rivertype.JobStateRunning, rivertype.JobStateScheduled}

// Register adds the workers. A process that is not to run contracts by itself leaves the runs to those that are.
func (s *Service) Register(w *river.Workers) (map[string]river.QueueConfig, error) {
	if err := errors.Join(river.AddWorkerSafely(w, &looker{s: s}), river.AddWorkerSafely(w, &runner{s: s})); err != nil {
		return nil, fmt.Errorf("recheck: %w", err)
	}
	queues := map[string]river.QueueConfig{lookQueue: {MaxWorkers: 1, FetchPollInterval: time.Second}, runQueue: {FetchPollInterval: time.Second}}
	if s.policy.Scope != Off {
		queues[runQueue] = river.QueueConfig{MaxWorkers: 1, FetchPollInterval: time.Second}
	}
	return queues, nil
}

// Use takes the client and has its leader add a look each minute.
func (s *Service) Use(c *queue.Client) {
	s.client = c
	c.PeriodicJobs().Add(river.NewPeriodicJob(river.PeriodicInterval(lookEvery), func() (river.JobArgs, *river.InsertOpts) {
		return lookArgs{}, &river.InsertOpts{Queue: lookQueue, UniqueOpts: river.UniqueOpts{ByState: unfinished}}
	}, &river.PeriodicJobOpts{RunOnStart: true}))
}

// Stop ends runs that are under way, so that the queue need not wait for them. They are made again later.
func (s *Service) Stop() { s.end() }

// looker works on lookArgs.
type looker struct {
	river.WorkerDefaults[lookArgs]
	s *Service
}

func (w *looker) Work(ctx context.Context, _ *river.Job[lookArgs]) error {
	if err := w.s.look(ctx); err != nil && ctx.Err() == nil {
		w.s.deps.Logger.WarnContext(ctx, "look at the gates", "error", err)
	}
	select {
	case w.s.looked <- struct{}{}:
	default:
	}
	return nil // the next look is a minute away
}

// look notices what changed at the gates of every version in use, and adds the runs that are due.
func (s *Service) look(ctx context.Context) error {
	suites, err := s.deps.Suites(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, suite := range suites {
		for _, target := range suite.Task.Route() {
			if _, err := s.deps.Look(ctx, suite.Task, target); err != nil {
				errs = append(errs, err)
				continue
			}
			due, err := s.due(ctx, suite.Task, target)
			if err == nil && due {
				_, err = s.client.Insert(ctx, runArgs{TaskVersion: suite.Task.Digest, Target: target},
					&river.InsertOpts{Queue: runQueue, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: unfinished}})
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s at %s: %w", suite.Task.Name, target, err))
			}
		}
	}
	return errors.Join(errs...)
}

// due says whether the contract is to be run now: a pass is about to expire, or one is stale. What never passed is proved on
// purpose, and what failed stays failed: a person looks at it.
func (s *Service) due(ctx context.Context, task *tasks.Definition, target string) (bool, error) {
	switch {
	case s.policy.Scope == Off || !s.deps.Real(target):
		return false, nil
	case s.policy.Scope == Fallbacks && !slices.Contains(task.Fallbacks, target):
		return false, nil
	}
	d, err := s.deps.Check(ctx, task, target)
	if err != nil {
		return false, err
	}
	before := min(s.policy.Before, task.Contract.MaxAge/2)
	return d.State == gate.Stale || d.Allowed && d.ExpiresAt != nil && !s.deps.Now().Before(d.ExpiresAt.Add(-before)), nil
}

// runner works on runArgs.
type runner struct {
	river.WorkerDefaults[runArgs]
	s *Service
}

func (w *runner) Timeout(*river.Job[runArgs]) time.Duration { return runFor }

func (w *runner) Work(ctx context.Context, entry *river.Job[runArgs]) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.s.life, cancel)() //nolint:contextcheck // Stop ends the run too
	log := w.s.deps.Logger.With("task_version", entry.Args.TaskVersion, "target", entry.Args.Target)
	err := w.s.run(ctx, entry.Args, log)
	switch {
	case err == nil:
		return nil
	case w.s.life.Err() != nil: // another process takes it up
		return river.JobSnooze(lookEvery) //nolint:wrapcheck // a signal to River, not an error
	}
	again := w.s.retry()
	log.WarnContext(ctx, "a contract could not be run again", "error", err, "next_try_in", again)
	return river.JobSnooze(again) //nolint:wrapcheck // a signal to River, not an error
}

// retry spreads a few tries over the time that is left before a pass expires.
func (s *Service) retry() time.Duration { return max(minRetry, s.policy.Before/4) }

// run asks again whether it is due: meanwhile somebody may have run the contract, or the version may be in use no more.
func (s *Service) run(ctx context.Context, a runArgs, log *slog.Logger) error {
	suites, err := s.deps.Suites(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(suites, func(c contracts.Suite) bool { return c.Task.Digest == a.TaskVersion })
	if i < 0 {
		return nil
	}
	if due, err := s.due(ctx, suites[i].Task, a.Target); err != nil || !due {
		return err
	}
	o := contracts.Options{Mode: report.Live}
	if s.policy.MaxCost != "" {
		if o.Spending, err = contracts.NewSpending(s.policy.MaxCost); err != nil {
			return err
		}
	}
	log.InfoContext(ctx, "run a contract again", "task", suites[i].Task.Name)
	res, _, err := s.deps.Runner.Run(ctx, suites[i], a.Target, o)
	if err != nil {
		return err
	}
	if err := s.deps.Record(ctx, res); err != nil {
		return err
	}
	level := slog.LevelInfo
	if !res.Passed {
		level = slog.LevelWarn // the newest result decides: the gate is closed
	}
	log.Log(ctx, level, "contract", "task", res.Task, "passed", res.Passed)
	// Another result may still be the newest, such as one of a machine whose clock is ahead. Each look would add a run then.
	if due, err := s.due(ctx, suites[i].Task, a.Target); err != nil || due {
		return cmp.Or(err, errStillDue)
	}
	return nil
}
