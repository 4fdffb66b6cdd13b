package callbacks_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	"go.jetify.com/typeid"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/callbacks"
	"github.com/docket-gateway/docket/internal/dispatch"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

const (
	secret = "whsec_YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh"
	older  = "whsec_YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJi"
	limit  = 10_000
)

var databases = storetest.New()

func TestMain(m *testing.M) { databases.Main(m) }

// testBundle is a handler before a service on a database of its own, with the providers demo and quiet; only demo has
// callbacks.
type testBundle struct {
	*jobs.Service

	store    *store.Store
	handler  http.Handler
	log      *strings.Builder
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
	b := &testBundle{
		store: st, log: &strings.Builder{}, sys: viewer.NewSystemContext(t.Context()),
		ann: viewer.NewContext(t.Context(), viewer.Viewer{Issuer: "test", Subject: "ann"}),
		Service: jobs.New(jobs.Deps{
			Store: st, Catalog: catalog(t), Queue: entries, Gate: openGate{}, Targets: anyTarget{}, Notifier: nobody{}, Metrics: nobody{}, Logger: quiet,
		}, jobs.Options{}),
	}
	b.handler = b.serve(t, b)
	return b
}

func (b *testBundle) serve(t *testing.T, s callbacks.Settler) http.Handler {
	t.Helper()
	h, err := callbacks.New(s, callbacks.Options{
		Secrets: map[string][]string{"demo": {secret, older}, "quiet": nil}, BodyLimit: limit, Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle(callbacks.Pattern, h)
	return mux
}

// unknown makes a job whose attempt at the target was sent and is UNKNOWN.
func (b *testBundle) unknown(t *testing.T, target string) *ent.Attempt {
	t.Helper()
	a := b.running(t, target)
	v, err := b.Settle(t.Context(), a.ID, jobs.Outcome{Unknown: true, Failure: &jobs.Failure{Code: "TIMEOUT", Message: "No answer in time."}})
	require.NoError(t, err)
	require.True(t, v.Landed)
	return v.Attempt
}

func (b *testBundle) running(t *testing.T, target string) *ent.Attempt {
	t.Helper()
	a := b.starting(t, target)
	l, err := b.Take(t.Context(), a.ID, *a.QueueEntry)
	require.NoError(t, err)
	require.NoError(t, b.MarkSent(t.Context(), l))
	require.NoError(t, b.Acknowledge(t.Context(), l, "", ""))
	return b.attempt(t, a.ID)
}

func (b *testBundle) starting(t *testing.T, target string) *ent.Attempt {
	t.Helper()
	key := typeid.Must(typeid.WithPrefix("key")).String()
	c, err := b.Create(b.ann, jobs.CreateInput{IdempotencyKey: &key, Task: "single", Input: json.RawMessage(`{}`), Target: &target})
	require.NoError(t, err)
	a, err := b.store.Client().Attempt.Query().Where(attempt.JobID(c.Job.ID)).Only(b.sys)
	require.NoError(t, err)
	return a
}

func (b *testBundle) attempt(t *testing.T, id string) *ent.Attempt {
	t.Helper()
	a, err := b.store.Client().Attempt.Query().Where(attempt.ID(id)).WithJob().Only(b.sys)
	require.NoError(t, err)
	return a
}

// callback is a request to be changed before it is signed and sent.
type callback struct {
	path, body, secret, id string
	at                     time.Time
	change                 func(r *http.Request) // after signing
}

func (b *testBundle) send(t *testing.T, c callback) (int, string) {
	t.Helper()
	return send(t, b.handler, c)
}

func send(t *testing.T, h http.Handler, c callback) (int, string) {
	t.Helper()
	if c.path == "" {
		c.path = "/callbacks/demo"
	}
	if c.secret == "" {
		c.secret = secret
	}
	if c.id == "" {
		c.id = "msg_1"
	}
	if c.at.IsZero() {
		c.at = time.Now()
	}
	w, err := standardwebhooks.NewWebhook(c.secret)
	require.NoError(t, err)
	signature, err := w.Sign(c.id, c.at, []byte(c.body))
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://docket.example.com"+c.path, strings.NewReader(c.body))
	r.Header.Set(standardwebhooks.HeaderWebhookID, c.id)
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(c.at.Unix(), 10))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	if c.change != nil {
		c.change(r)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

func succeeded(t *testing.T, attemptID, output string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"attemptId": attemptID, "outcome": "succeeded", "output": output})
	require.NoError(t, err)
	return string(raw)
}

func catalog(t *testing.T) *tasks.Catalog {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range map[string]string{
		tasks.FileTask:        "name: single\nversion: v1\ntarget: demo/a\nretry: {max: 0}\n",
		tasks.FileInputSchema: `{"type":"object"}`, tasks.FileSystem: "Answer.\n", tasks.FilePrompt: "{{json .Input}}\n",
		tasks.FileOutputSchema: `{"type":"object","required":["answer"],"properties":{"answer":{"type":["string","number"]}}}`,
	} {
		fsys["single/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	d, err := tasks.Load(fsys, "single")
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
