package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/viewer"
)

var databases = storetest.New()

func TestMain(m *testing.M) { databases.Main(m) }

// testBundle is a service on a database of its own.
type testBundle struct {
	*Service

	store    *store.Store
	queue    *fakeQueue
	gate     *fakeGate
	targets  *fakeTargets
	notifier *fakeNotifier
	metrics  *fakeMetrics

	ann, bob, op context.Context // two owners and an operator
	sys          context.Context
}

// eachDatabase runs a test on SQLite and on PostgreSQL.
func eachDatabase(t *testing.T, f func(t *testing.T, b *testBundle)) {
	t.Helper()
	databases.Each(t, func(t *testing.T, address string) { f(t, setup(t, address)) })
}

func setup(t *testing.T, address string) *testBundle {
	t.Helper()
	st, err := store.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	ctx := t.Context()
	b := &testBundle{
		store: st, queue: newFakeQueue(), gate: &fakeGate{}, targets: &fakeTargets{}, notifier: newFakeNotifier(), metrics: &fakeMetrics{},
		ann: viewer.NewContext(ctx, viewer.Viewer{Issuer: "test", Subject: "ann"}),
		bob: viewer.NewContext(ctx, viewer.Viewer{Issuer: "test", Subject: "bob"}),
		op:  viewer.NewContext(ctx, viewer.Viewer{Issuer: "test", Subject: "olga", Operator: true}),
		sys: viewer.NewSystemContext(ctx),
	}
	b.Service = b.process(allTasks(t))
	return b
}

// restarted is another process on the same database, with another catalog.
func (b *testBundle) restarted(defs testTasks) *testBundle {
	other := *b
	other.Service = b.process(defs)
	return &other
}

func (b *testBundle) process(defs testTasks) *Service {
	s := New(Deps{
		Store: b.store, Catalog: defs.catalog, Queue: b.queue, Gate: b.gate, Targets: b.targets, Notifier: b.notifier,
		Metrics: b.metrics, Logger: slog.New(slog.DiscardHandler),
	}, Options{})
	s.jitter = func() float64 { return 0 }
	return s
}

// The steps that tests are made of. All fail the test on an error.

func (b *testBundle) create(t *testing.T, task string) *ent.Job {
	t.Helper()
	c, err := b.Create(b.ann, CreateInput{IdempotencyKey: new(newID("key")), Task: task, Input: json.RawMessage(`{"text":"a"}`)})
	require.NoError(t, err)
	require.False(t, c.Replayed)
	return c.Job
}

func (b *testBundle) job(t *testing.T, id string) *ent.Job {
	t.Helper()
	j, err := b.store.Client().Job.Get(b.sys, id)
	require.NoError(t, err)
	return j
}

func (b *testBundle) attempt(t *testing.T, id string) *ent.Attempt {
	t.Helper()
	a, err := b.store.Client().Attempt.Get(b.sys, id)
	require.NoError(t, err)
	return a
}

func (b *testBundle) attempts(t *testing.T, jobID string) []*ent.Attempt {
	t.Helper()
	as, err := b.store.Client().Attempt.Query().Where(attempt.JobID(jobID)).Order(ent.Asc(attempt.FieldNumber)).All(b.sys)
	require.NoError(t, err)
	return as
}

// last is the job's newest attempt.
func (b *testBundle) last(t *testing.T, jobID string) *ent.Attempt {
	t.Helper()
	as := b.attempts(t, jobID)
	require.NotEmpty(t, as)
	return as[len(as)-1]
}

func (b *testBundle) take(t *testing.T, a *ent.Attempt) *Lease {
	t.Helper()
	l, err := b.Take(t.Context(), a.ID, *b.attempt(t, a.ID).QueueEntry)
	require.NoError(t, err)
	return l
}

func (b *testBundle) sent(t *testing.T, a *ent.Attempt) *Lease {
	t.Helper()
	l := b.take(t, a)
	require.NoError(t, b.MarkSent(t.Context(), l))
	return l
}

func (b *testBundle) running(t *testing.T, a *ent.Attempt) *Lease {
	t.Helper()
	l := b.sent(t, a)
	require.NoError(t, b.Acknowledge(t.Context(), l, "req-1", ""))
	return l
}

func (b *testBundle) settle(t *testing.T, a *ent.Attempt, o Outcome) Verdict {
	t.Helper()
	v, err := b.Settle(t.Context(), a.ID, o)
	require.NoError(t, err)
	return v
}

func (b *testBundle) fails(t *testing.T, a *ent.Attempt, retryable bool) Verdict {
	t.Helper()
	return b.settle(t, a, Outcome{Failure: &Failure{Code: "SERVER_ERROR", Message: "The provider said no.", Retryable: retryable}})
}

func (b *testBundle) loses(t *testing.T, a *ent.Attempt) Verdict {
	t.Helper()
	return b.settle(t, a, Outcome{Unknown: true, Failure: &Failure{Code: "TIMEOUT", Message: "No answer in time."}})
}

// unknown makes a new job whose only attempt was sent and is UNKNOWN.
func (b *testBundle) unknown(t *testing.T, task string) (*ent.Job, *ent.Attempt) {
	t.Helper()
	j := b.create(t, task)
	a := b.last(t, j.ID)
	b.running(t, a)
	require.True(t, b.loses(t, a).Landed)
	return b.job(t, j.ID), b.attempt(t, a.ID)
}

// failed makes a new job that is FAILED: the task has no fallback.
func (b *testBundle) failedJob(t *testing.T) *ent.Job {
	t.Helper()
	j := b.create(t, "single")
	a := b.last(t, j.ID)
	b.running(t, a)
	require.True(t, b.fails(t, a, false).Landed)
	j = b.job(t, j.ID)
	require.Equal(t, job.StateFAILED, j.State)
	return j
}

// race makes a job with two RUNNING attempts.
func (b *testBundle) race(t *testing.T) (j *ent.Job, first, second *ent.Attempt) {
	t.Helper()
	j = b.create(t, "race")
	first = b.last(t, j.ID)
	b.running(t, first)
	s, err := b.StartAttempt(b.ann, j.ID, nil)
	require.NoError(t, err)
	b.running(t, s.Attempt)
	return b.job(t, j.ID), b.attempt(t, first.ID), b.attempt(t, s.Attempt.ID)
}

// answer is a complete, valid answer.
func answer(text string) Outcome {
	raw, err := json.Marshal(map[string]string{"answer": text})
	if err != nil {
		panic(err)
	}
	return Outcome{Output: raw, Usage: Usage{InputTokens: new(7), OutputTokens: new(11)}}
}

// exec runs a statement past all of our code.
func (b *testBundle) exec(t *testing.T, statement string) error {
	t.Helper()
	_, err := b.store.DB().ExecContext(t.Context(), statement)
	return err
}

// expireLeases lets every lease end at once, as if the workers had died long ago.
func (b *testBundle) expireLeases(t *testing.T) {
	t.Helper()
	require.NoError(t, b.exec(t, "UPDATE attempts SET lease_expires_at = "+b.store.Now(-time.Minute)+" WHERE lease_expires_at IS NOT NULL"))
}
