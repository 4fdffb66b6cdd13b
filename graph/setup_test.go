package graph_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/events"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/logtest"
	"github.com/docket-gateway/docket/internal/retention"
	"github.com/docket-gateway/docket/internal/seed"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

var alice = viewer.Viewer{Issuer: "dev", Subject: "alice"}

const (
	asAlice    = "Bearer dev:alice"
	asMallory  = "Bearer dev:mallory"
	asOperator = "Bearer dev:olga:operator"
)

// keptFor is how long finished jobs are kept.
const keptFor = 48 * time.Hour

// bundle is an endpoint over a real database, with a fake jobs service.
type bundle struct {
	*seed.Seed
	jobs *fakeJobs
	url  string
	hub  *events.Hub
	log  *logtest.Buffer
	// statements counts what the resolvers ask the database.
	statements *atomic.Int64
}

func setup(t *testing.T, change ...func(*graph.Options)) *bundle {
	t.Helper()
	return setupBehind(t, auth.NewDevGuard(), change...)
}

func setupBehind(t *testing.T, guard *auth.Guard, change ...func(*graph.Options)) *bundle {
	t.Helper()
	b := &bundle{Seed: seed.SQLite(t), log: &logtest.Buffer{}, statements: &atomic.Int64{}}
	driver := dialect.DebugWithContext(entsql.OpenDB(dialect.SQLite, b.Store.DB()), func(context.Context, ...any) { b.statements.Add(1) })
	client := ent.NewClient(ent.Driver(driver))
	b.jobs = &fakeJobs{t: t, seed: b.Seed}
	b.hub = events.NewHub()
	b.Changed = b.hub.JobChanged
	catalog := fakeCatalog{{
		Name: "triage", Version: "1", Target: "demo/inkjet", Fallbacks: []string{"demo/laser"},
		InputSchemaJSON: json.RawMessage(`{"type": "object"}`), OutputSchemaJSON: json.RawMessage(`true`),
	}}
	resolver := graph.NewResolver(graph.Deps{
		Retention: retention.Policy{Age: keptFor},
		Client:    client, Jobs: b.jobs, Catalog: catalog, Targets: fakeTargets{},
		Follower: &events.Follower{Client: client, Hub: b.hub},
		Gate: func(_ context.Context, task *tasks.Definition, target string) (gate.Decision, error) {
			return gate.Decision{State: gate.Missing, Reasons: []string{task.Name + " was never run at " + target}}, nil
		},
	})
	o := graph.Options{Logger: slog.New(slog.NewTextHandler(b.log, nil))}
	for _, c := range change {
		c(&o)
	}
	srv := httptest.NewServer(guard.Handler(graph.NewHandler(resolver, guard, o)))
	t.Cleanup(srv.Close)
	b.url = srv.URL
	return b
}

type fakeCatalog []*tasks.Definition

func (c fakeCatalog) All() []*tasks.Definition { return c }
func (c fakeCatalog) Get(name string) (*tasks.Definition, bool) {
	for _, d := range c {
		if d.Name == name {
			return d, true
		}
	}
	return nil, false
}

type fakeTargets struct{}

func (fakeTargets) Targets() []graph.Target {
	return []graph.Target{{ID: "demo/laser", Provider: "demo", Model: "laser", Available: true}}
}

// fakeJobs records what it is asked and answers with err, or with a job.
type fakeJobs struct {
	t    *testing.T
	seed *seed.Seed

	mu      sync.Mutex
	created []jobs.CreateInput
	calls   int
	err     error
	panics  string
	done    jobs.AttemptAndJob
}

func (f *fakeJobs) call() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.panics != "" {
		panic(f.panics)
	}
	return f.err
}

func (f *fakeJobs) Create(ctx context.Context, in jobs.CreateInput) (jobs.Created, error) {
	f.mu.Lock()
	f.created = append(f.created, in)
	f.mu.Unlock()
	if err := f.call(); err != nil {
		return jobs.Created{}, err
	}
	v, _ := viewer.FromContext(ctx)
	key := "k"
	if in.IdempotencyKey != nil {
		key = *in.IdempotencyKey
	}
	return jobs.Created{Job: f.seed.Job(f.t, v, key)}, nil
}

func (f *fakeJobs) StartAttempt(context.Context, string, *string) (jobs.AttemptAndJob, error) {
	return f.done, f.call()
}

func (f *fakeJobs) CancelAttempt(context.Context, string, *string) (jobs.AttemptAndJob, error) {
	return f.done, f.call()
}

func (f *fakeJobs) CancelJob(context.Context, string, *string) (*ent.Job, error) {
	return f.done.Job, f.call()
}

func (f *fakeJobs) ResolveAttempt(context.Context, jobs.Resolution) (jobs.AttemptAndJob, error) {
	return f.done, f.call()
}

// only is the one createJob that was asked for.
func (f *fakeJobs) only() jobs.CreateInput {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Len(f.t, f.created, 1)
	return f.created[0]
}

type answer struct {
	status int
	header http.Header
	body   string

	Data   map[string]any
	Errors []struct {
		Message    string
		Path       []any
		Extensions struct{ Code string }
	}
}

func (a answer) code() string {
	if len(a.Errors) == 0 {
		return ""
	}
	return a.Errors[0].Extensions.Code
}

// at follows names and indices into the data.
func (a answer) at(t *testing.T, path ...any) any {
	t.Helper()
	require.Empty(t, a.Errors, a.body)
	var v any = a.Data
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

func (b *bundle) do(t *testing.T, r *http.Request) answer {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(text)}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&a), a.body)
	for _, e := range a.Errors {
		require.NotEmpty(t, e.Extensions.Code, a.body)
	}
	return a
}

// raw posts a body as it is.
func (b *bundle) raw(t *testing.T, as, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", as)
	r.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(header, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	return b.do(t, r)
}

func request(query, variables string) string {
	q, err := json.Marshal(query)
	if err != nil {
		panic(err)
	}
	if variables == "" {
		variables = "null"
	}
	return `{"query":` + string(q) + `,"variables":` + variables + `}`
}

func (b *bundle) post(t *testing.T, as, query, variables string, header ...string) answer {
	t.Helper()
	return b.raw(t, as, request(query, variables), header...)
}

func (b *bundle) get(t *testing.T, as, query, variables string) answer {
	t.Helper()
	values := url.Values{"query": {query}}
	if variables != "" {
		values.Set("variables", variables)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"?"+values.Encode(), nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", as)
	return b.do(t, r)
}

// event is one server-sent event.
type event struct{ name, data string }

// stream opens an event stream; it ends with the test, or by stop.
func (b *bundle) stream(t *testing.T, as, query, variables string, headers ...string) (next func() event, stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url, strings.NewReader(request(query, variables)))
	require.NoError(t, err)
	r.Header.Set("Authorization", as)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	lines := bufio.NewScanner(resp.Body)
	return func() (e event) {
		t.Helper()
		seen := false
		for lines.Scan() {
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "event:"):
				e.name = strings.TrimSpace(line[6:])
			case strings.HasPrefix(line, "data:"):
				e.data, seen = strings.TrimSpace(line[5:]), true
			case line == "" && seen: // as EventSource: no data, no event
				return e
			}
		}
		return event{name: "EOF"}
	}, cancel
}

// socket is a WebSocket client.
type socket struct {
	t    *testing.T
	ctx  context.Context
	conn *websocket.Conn
}

func (b *bundle) dial(t *testing.T, protocols ...string) *socket {
	t.Helper()
	return b.dialOptions(t, &websocket.DialOptions{Subprotocols: protocols})
}

// dialWith sends a header with the handshake.
func (b *bundle) dialWith(t *testing.T, name, value string) *socket {
	t.Helper()
	return b.dialOptions(t, &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, HTTPHeader: http.Header{name: {value}},
	})
}

func (b *bundle) dialOptions(t *testing.T, o *websocket.DialOptions) *socket {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, b.url, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &socket{t: t, ctx: ctx, conn: conn}
}

// open is dial and the protocol's greeting.
func (b *bundle) open(t *testing.T, as string) *socket {
	t.Helper()
	s := b.dial(t, "graphql-transport-ws")
	s.send(`{"type":"connection_init","payload":{"Authorization":"` + as + `"}}`)
	require.Equal(t, "connection_ack", s.receive().Type)
	return s
}

func (s *socket) send(text string) {
	s.t.Helper()
	require.NoError(s.t, s.conn.Write(s.ctx, websocket.MessageText, []byte(text)))
}

func (s *socket) subscribe(id, query, variables string) {
	s.t.Helper()
	s.send(`{"id":"` + id + `","type":"subscribe","payload":` + request(query, variables) + `}`)
}

type message struct {
	ID, Type string
	Payload  json.RawMessage
}

func (s *socket) receive() (m message) {
	s.t.Helper()
	_, text, err := s.conn.Read(s.ctx)
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(text, &m))
	return m
}

// closed is the code that the server closes with.
func (s *socket) closed() int {
	s.t.Helper()
	for {
		if _, _, err := s.conn.Read(s.ctx); err != nil {
			return int(websocket.CloseStatus(err))
		}
	}
}
