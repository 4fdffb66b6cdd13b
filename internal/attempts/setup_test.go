package attempts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.jetify.com/typeid"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/attempts"
	"github.com/docket-gateway/docket/internal/dispatch"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

var databases = storetest.New()

func TestMain(m *testing.M) { databases.Main(m) }

// testBundle is a service on a database of its own. Its queue only takes entries.
type testBundle struct {
	*jobs.Service

	store    *store.Store
	ann, sys context.Context
}

func eachDatabase(t *testing.T, f func(t *testing.T, b *testBundle)) {
	t.Helper()
	databases.Each(t, func(t *testing.T, address string) { f(t, setup(t, address)) })
}

func setupSQLite(t *testing.T) *testBundle {
	t.Helper()
	return setup(t, databases.SQLite(t))
}

func setup(t *testing.T, address string) *testBundle {
	t.Helper()
	st, err := store.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	quiet := slog.New(slog.DiscardHandler)
	entries := dispatch.NewQueue(dispatch.QueueOptions{Logger: quiet})
	_, err = queue.Open(st, queue.Options{Logger: quiet}, entries)
	require.NoError(t, err)
	return &testBundle{
		store: st, sys: viewer.NewSystemContext(t.Context()),
		ann: viewer.NewContext(t.Context(), viewer.Viewer{Issuer: "test", Subject: "ann"}),
		Service: jobs.New(jobs.Deps{
			Store: st, Catalog: catalog(t), Queue: entries, Gate: openGate{}, Targets: anyTarget{}, Notifier: nobody{}, Metrics: nobody{}, Logger: quiet,
		}, jobs.Options{}),
	}
}

// unknown makes a job whose attempt at the target was sent at that time and is UNKNOWN.
func (b *testBundle) unknown(t *testing.T, target string, sent time.Time) *ent.Attempt {
	t.Helper()
	key := typeid.Must(typeid.WithPrefix("key")).String()
	c, err := b.Create(b.ann, jobs.CreateInput{IdempotencyKey: &key, Task: "route", Input: json.RawMessage(`{}`), Target: &target})
	require.NoError(t, err)
	a := b.attempts(t, c.Job.ID)[0]
	l, err := b.Take(t.Context(), a.ID, *a.QueueEntry)
	require.NoError(t, err)
	require.NoError(t, b.MarkSent(t.Context(), l))
	v, err := b.Settle(t.Context(), a.ID, jobs.Outcome{Unknown: true, Failure: &jobs.Failure{Code: "ACK_TIMEOUT", Message: "No answer in time."}})
	require.NoError(t, err)
	require.True(t, v.Landed)
	require.NoError(t, b.store.Client().Attempt.Update().Where(attempt.ID(a.ID)).SetSentAt(sent).Exec(b.sys))
	return b.attempt(t, a.ID)
}

func (b *testBundle) attempt(t *testing.T, id string) *ent.Attempt {
	t.Helper()
	a, err := b.store.Client().Attempt.Query().Where(attempt.ID(id)).WithJob().WithEvents().Only(b.sys)
	require.NoError(t, err)
	return a
}

func (b *testBundle) attempts(t *testing.T, jobID string) []*ent.Attempt {
	t.Helper()
	as, err := b.store.Client().Attempt.Query().Where(attempt.JobID(jobID)).Order(ent.Asc(attempt.FieldNumber)).All(b.sys)
	require.NoError(t, err)
	return as
}

// snapshot is every attempt with its state.
func (b *testBundle) snapshot(t *testing.T) map[string]attempt.State {
	t.Helper()
	as, err := b.store.Client().Attempt.Query().All(b.sys)
	require.NoError(t, err)
	states := map[string]attempt.State{}
	for _, a := range as {
		states[a.ID] = a.State
	}
	return states
}

// settle runs the command and returns its exit code, output and error.
func (b *testBundle) settle(t *testing.T, r attempts.Resolver, o attempts.SettleOptions) (int, string, error) {
	t.Helper()
	var out bytes.Buffer
	code, err := attempts.Settle(t.Context(), b.store.Client(), r, o, attempts.Streams{Out: &out, Err: &out})
	return code, out.String(), err
}

func catalog(t *testing.T) *tasks.Catalog {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range map[string]string{
		tasks.FileTask:        "name: route\nversion: v1\ntarget: paper/a\nfallbacks: [paper/next]\nretry: {max: 0}\n",
		tasks.FileInputSchema: `{"type":"object"}`, tasks.FileSystem: "Answer.\n", tasks.FilePrompt: "{{json .Input}}\n",
		tasks.FileOutputSchema: `{"type":"object","properties":{"answer":{"type":"string"}}}`,
	} {
		fsys["route/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	d, err := tasks.Load(fsys, "route")
	require.NoError(t, err)
	c, err := tasks.NewCatalog(d)
	require.NoError(t, err)
	return c
}

type anyTarget struct{}

func (anyTarget) Known(string) bool { return true }

type openGate struct{}

func (openGate) Check(context.Context, *ent.Client, *tasks.Definition, string) (gate.Decision, error) {
	return gate.Decision{Allowed: true, State: gate.Passed}, nil
}

type nobody struct{}

func (nobody) JobChanged(string)             {}
func (nobody) RaceLost()                     {}
func (nobody) AttemptSettled(string, string) {}
