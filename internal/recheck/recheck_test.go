package recheck

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/tasks"
)

var databases = storetest.New()

func TestMain(m *testing.M) { databases.Main(m) }

// world is what the processes of a test share: a gate, and what was run.
type world struct {
	address string

	mu       sync.Mutex
	decision gate.Decision
	stuck    bool // no result changes the decision
	looks    int
	recorded []report.Result
	options  []contracts.Options
	answer   func(ctx context.Context) (report.Result, error)
	ran      chan struct{}
}

func newWorld(address string, d gate.Decision) *world {
	return &world{address: address, decision: d, ran: make(chan struct{}, 100)}
}

func expires(in time.Duration) gate.Decision {
	at := time.Now().Add(in)
	return gate.Decision{Allowed: true, State: gate.Passed, ExpiresAt: &at}
}

var task = &tasks.Definition{Name: "triage", Digest: "sha256:v1", Target: "acme/first", Fallbacks: []string{"acme/second", "demo/laser"},
	Contract: tasks.ContractPolicy{MaxAge: 168 * time.Hour}}

func (w *world) Run(ctx context.Context, s contracts.Suite, target string, o contracts.Options) (report.Result, *contracts.Evidence, error) {
	w.mu.Lock()
	w.options = append(w.options, o)
	answer := w.answer
	w.mu.Unlock()
	w.ran <- struct{}{}
	if answer != nil {
		res, err := answer(ctx)
		return res, nil, err
	}
	return report.Result{Task: s.Task.Name, Target: target, Passed: true}, nil, nil
}

func (w *world) deps() Deps {
	return Deps{
		Suites: func(context.Context) ([]contracts.Suite, error) { return []contracts.Suite{{Task: task}}, nil },
		Real:   func(target string) bool { return target != "demo/laser" },
		Check: func(context.Context, *tasks.Definition, string) (gate.Decision, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.decision, nil
		},
		Look: func(context.Context, *tasks.Definition, string) (bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.looks++
			return false, nil
		},
		Record: func(_ context.Context, r report.Result) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.recorded = append(w.recorded, r)
			if !w.stuck {
				w.decision = expires(100 * time.Hour)
			}
			return nil
		},
		Runner: w, Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	}
}

// process is one of several on a database.
type process struct {
	*Service

	queue *queue.Client
	ended <-chan *river.Event
}

func (w *world) process(t *testing.T, p Policy) *process {
	t.Helper()
	st, err := store.Open(t.Context(), w.address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	s := New(p, w.deps())
	c, err := queue.Open(st, queue.Options{Logger: slog.New(slog.DiscardHandler)}, s)
	require.NoError(t, err)
	ended, unsubscribe := c.Subscribe(river.EventKindJobCompleted, river.EventKindJobSnoozed, river.EventKindJobFailed)
	t.Cleanup(unsubscribe)
	require.NoError(t, c.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() {
		s.Stop()
		require.NoError(t, c.Stop(context.WithoutCancel(t.Context())))
	})
	return &process{Service: s, queue: c, ended: ended}
}

// over waits until a run's entry was worked on and returns it.
func (p *process) over(t *testing.T) *rivertype.JobRow {
	t.Helper()
	for {
		if e := await.Receive(t, "an entry is worked on", p.ended); e.Job.Kind == (runArgs{}).Kind() {
			return e.Job
		}
	}
}

// runs are the entries of runs.
func (p *process) runs(t *testing.T) []*rivertype.JobRow {
	t.Helper()
	res, err := p.queue.JobList(t.Context(), river.NewJobListParams().Kinds((runArgs{}).Kind()))
	require.NoError(t, err)
	return res.Jobs
}

var fallbacks = Policy{Scope: Fallbacks, Before: 24 * time.Hour}

func TestRuns(t *testing.T) {
	t.Parallel()
	databases.EachKind(t, testRuns)
}

func testRuns(t *testing.T, fresh func(tb testing.TB) string) {
	t.Helper()

	t.Run("RunsAContractBeforeItsResultExpires", func(t *testing.T) {
		t.Parallel()
		w := newWorld(fresh(t), expires(23*time.Hour))
		p := w.process(t, Policy{Scope: Fallbacks, Before: 24 * time.Hour, MaxCost: "0.5"})
		require.Equal(t, rivertype.JobStateCompleted, p.over(t).State) // added by the leader's look
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Len(t, w.recorded, 1)
		require.Equal(t, "acme/second", w.recorded[0].Target, "the fallback that is real")
		require.Equal(t, report.Live, w.options[0].Mode)
		require.NotNil(t, w.options[0].Spending)
		require.GreaterOrEqual(t, w.looks, 3)
	})

	t.Run("OnlyOneOfSeveralProcessesRunsIt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(fresh(t), expires(23*time.Hour))
		release := make(chan struct{})
		w.answer = func(context.Context) (report.Result, error) {
			<-release
			return report.Result{Task: "triage", Target: "acme/second", Passed: true}, nil
		}
		a, b := w.process(t, fallbacks), w.process(t, fallbacks)
		await.Receive(t, "the first run", w.ran)
		for range 3 {
			require.NoError(t, a.look(t.Context()))
			require.NoError(t, b.look(t.Context()))
		}
		require.Len(t, a.runs(t), 1)
		close(release)
		await.Until(t, "it has run", func() bool { // whichever has it
			j := a.runs(t)
			return len(j) == 1 && j[0].State == rivertype.JobStateCompleted
		})
		require.NoError(t, b.look(t.Context()))
		require.Len(t, a.runs(t), 1, "the pass is new")
		require.Empty(t, w.ran)
	})

	t.Run("TriesAgainLaterWhenNothingCanBeSaid", func(t *testing.T) {
		t.Parallel()
		w := newWorld(fresh(t), expires(23*time.Hour))
		w.answer = func(context.Context) (report.Result, error) { return report.Result{}, contracts.ErrMaxCost }
		p := w.process(t, fallbacks)
		j := p.over(t)
		require.Equal(t, rivertype.JobStateScheduled, j.State)
		require.WithinDuration(t, time.Now().Add(6*time.Hour), j.ScheduledAt, time.Minute)
		require.NoError(t, p.look(t.Context()))
		require.Len(t, p.runs(t), 1, "it costs something each time")
		require.Empty(t, w.recorded)
	})

	t.Run("DoesNotRunAllTheTimeWhatNoResultCures", func(t *testing.T) {
		t.Parallel()
		w := newWorld(fresh(t), gate.Decision{State: gate.Stale})
		w.stuck = true
		p := w.process(t, fallbacks)
		j := p.over(t)
		require.Equal(t, rivertype.JobStateScheduled, j.State)
		require.WithinDuration(t, time.Now().Add(6*time.Hour), j.ScheduledAt, time.Minute)
		require.NoError(t, p.look(t.Context()))
		require.Len(t, p.runs(t), 1, "it costs something each time")
		require.Len(t, w.recorded, 1, "it is stored nevertheless")
	})

	t.Run("StoppingEndsARunAtOnceAndLeavesItToOthers", func(t *testing.T) {
		t.Parallel()
		w := newWorld(fresh(t), expires(23*time.Hour))
		w.answer = func(ctx context.Context) (report.Result, error) {
			<-ctx.Done()
			return report.Result{}, contracts.ErrInterrupted
		}
		p := w.process(t, fallbacks)
		await.Receive(t, "the run", w.ran)
		p.Stop()
		j := p.over(t)
		require.Equal(t, rivertype.JobStateScheduled, j.State)
		require.WithinDuration(t, time.Now().Add(time.Minute), j.ScheduledAt, 30*time.Second)
	})

	t.Run("LooksButRunsNothingWhenOff", func(t *testing.T) {
		t.Parallel()
		w := newWorld(fresh(t), expires(time.Minute))
		p := w.process(t, Policy{Scope: Off, Before: 24 * time.Hour})
		await.Receive(t, "a look", p.looked)
		require.NotZero(t, w.looks)
		require.Empty(t, p.runs(t))
	})

	t.Run("LeavesOutWhatIsInUseNoMore", func(t *testing.T) {
		t.Parallel()
		w := newWorld(fresh(t), expires(100*time.Hour))
		p := w.process(t, fallbacks)
		_, err := p.queue.Insert(t.Context(), runArgs{TaskVersion: "sha256:gone", Target: "acme/second"}, &river.InsertOpts{Queue: runQueue})
		require.NoError(t, err)
		require.Equal(t, rivertype.JobStateCompleted, p.over(t).State)
		_, err = p.queue.Insert(t.Context(), runArgs{TaskVersion: task.Digest, Target: "acme/second"}, &river.InsertOpts{Queue: runQueue})
		require.NoError(t, err)
		require.Equal(t, rivertype.JobStateCompleted, p.over(t).State)
		require.Empty(t, w.ran, "renewed by somebody else meanwhile")
	})
}

func TestDue(t *testing.T) {
	t.Parallel()
	short := *task
	short.Contract.MaxAge = 2 * time.Hour
	for name, tc := range map[string]struct {
		scope  Scope
		target string
		task   *tasks.Definition
		d      gate.Decision
		due    bool
	}{
		"AboutToExpire":        {Fallbacks, "acme/second", task, expires(23 * time.Hour), true},
		"HasTime":              {Fallbacks, "acme/second", task, expires(25 * time.Hour), false},
		"Stale":                {Fallbacks, "acme/second", task, gate.Decision{State: gate.Stale}, true},
		"Failed":               {Fallbacks, "acme/second", task, gate.Decision{State: gate.Failed}, false},
		"NeverProved":          {Fallbacks, "acme/second", task, gate.Decision{State: gate.Missing}, false},
		"Primary":              {Fallbacks, "acme/first", task, gate.Decision{State: gate.Stale}, false},
		"PrimaryOfRoute":       {Route, "acme/first", task, gate.Decision{State: gate.Stale}, true},
		"Demo":                 {Route, "demo/laser", task, gate.Decision{State: gate.Stale}, false},
		"Off":                  {Off, "acme/second", task, gate.Decision{State: gate.Stale}, false},
		"ShortLived":           {Fallbacks, "acme/second", &short, expires(70 * time.Minute), false},
		"ShortLivedAfterAHalf": {Fallbacks, "acme/second", &short, expires(50 * time.Minute), true},
	} {
		w := newWorld("", tc.d)
		due, err := New(Policy{Scope: tc.scope, Before: 24 * time.Hour}, w.deps()).due(t.Context(), tc.task, tc.target)
		require.NoError(t, err)
		require.Equal(t, tc.due, due, name)
	}

	w := newWorld("", gate.Decision{})
	deps := w.deps()
	deps.Check = func(context.Context, *tasks.Definition, string) (gate.Decision, error) {
		return gate.Decision{}, sql.ErrConnDone
	}
	due, err := New(fallbacks, deps).due(t.Context(), task, "acme/second")
	require.ErrorIs(t, err, sql.ErrConnDone)
	require.False(t, due)
}
