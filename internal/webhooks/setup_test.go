package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/logtest"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

var databases = storetest.New()

func TestMain(m *testing.M) {
	databases.Main(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines outlive the tests:", err)
		os.Exit(1)
	}
}

// eachDatabase runs a test on SQLite and on PostgreSQL.
func eachDatabase(t *testing.T, f func(t *testing.T, address string)) {
	t.Helper()
	databases.Each(t, f)
}

// process is one docket as far as this package goes: jobs, whose attempts nobody works on, and webhooks.
type process struct {
	*jobs.Service

	hooks   *Service
	store   *store.Store
	client  *queue.Client
	results chan string // of the tries
	log     *logtest.Buffer
	ann     context.Context
	sys     context.Context
	stop    func()
}

// start opens a process; its deliveries begin with work.
func start(t *testing.T, address string, secrets ...string) *process {
	t.Helper()
	ctx := t.Context()
	st, err := store.Open(ctx, address, store.WithMaxConns(6))
	require.NoError(t, err)
	p := &process{store: st, results: make(chan string, 100), log: &logtest.Buffer{}, sys: viewer.NewSystemContext(ctx),
		ann: viewer.NewContext(ctx, viewer.Viewer{Issuer: "test", Subject: "ann"})}
	log := slog.New(slog.NewJSONHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p.hooks, err = New(Options{Secrets: secrets, AllowPrivate: true, Logger: log, Metrics: p})
	require.NoError(t, err)
	p.hooks.backoff = func(int) time.Duration { return 0 }
	p.hooks.poll = 20 * time.Millisecond
	p.client, err = queue.Open(st, queue.Options{Logger: log}, p.hooks, idle{})
	require.NoError(t, err)
	p.Service = jobs.New(jobs.Deps{
		Store: st, Catalog: catalog(t), Queue: attempts{}, Gate: closed{}, Targets: known{}, Callbacks: p.hooks,
		Notifier: unheard{}, Metrics: unheard{}, Logger: log,
	}, jobs.Options{})
	p.stop = sync.OnceFunc(func() { require.NoError(t, st.Close()) })
	t.Cleanup(func() { p.stop() })
	return p
}

// work starts the deliveries, until the test ends.
func (p *process) work(t *testing.T) {
	t.Helper()
	require.NoError(t, p.client.Start(context.WithoutCancel(t.Context())))
	end := p.stop
	p.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), await.Patience)
		defer cancel()
		require.NoError(t, p.client.StopAndCancel(ctx))
		end()
	})
}

func (p *process) WebhookTried(result string) { p.results <- result }

func (p *process) create(t *testing.T, callback string) *ent.Job {
	t.Helper()
	c, err := p.Create(p.ann, jobs.CreateInput{IdempotencyKey: new("key of " + t.Name()), Task: "plain", Input: json.RawMessage(`{"text":"a"}`), CallbackURL: &callback})
	require.NoError(t, err)
	return c.Job
}

func (p *process) cancel(t *testing.T, j *ent.Job) {
	t.Helper()
	_, err := p.CancelJob(p.ann, j.ID, nil)
	require.NoError(t, err)
}

// settle sends the job's newest attempt and records its outcome.
func (p *process) settle(t *testing.T, j *ent.Job, o jobs.Outcome) {
	t.Helper()
	a, err := p.store.Client().Attempt.Query().Where(attempt.JobID(j.ID)).Order(ent.Desc(attempt.FieldNumber)).First(p.sys)
	require.NoError(t, err)
	l, err := p.Take(p.sys, a.ID, *a.QueueEntry)
	require.NoError(t, err)
	require.NoError(t, p.MarkSent(p.sys, l))
	v, err := p.Settle(p.sys, a.ID, o)
	require.NoError(t, err)
	require.True(t, v.Landed)
}

func (p *process) job(t *testing.T, id string) *ent.Job {
	t.Helper()
	j, err := p.store.Client().Job.Query().Where(job.ID(id)).Only(p.sys)
	require.NoError(t, err)
	return j
}

// entries returns how many deliveries are in the state.
func (p *process) entries(t *testing.T, state string) (n int) {
	t.Helper()
	require.NoError(t, p.store.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM river_job WHERE kind = 'webhook' AND state = '"+state+"'").Scan(&n))
	return n
}

func (p *process) exec(t *testing.T, statement string) {
	t.Helper()
	r, err := p.store.DB().ExecContext(t.Context(), statement)
	require.NoError(t, err)
	n, err := r.RowsAffected()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// receiver is a client's server. It answers with the statuses in their order, and with the last one from then on.
type receiver struct {
	*httptest.Server

	got   chan received
	mu    sync.Mutex
	say   []int
	after string // the Retry-After of every answer
}

type received struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T, say ...int) *receiver {
	t.Helper()
	r := &receiver{got: make(chan received, 100), say: say}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	status := r.say[0]
	if len(r.say) > 1 {
		r.say = r.say[1:]
	}
	r.mu.Unlock()
	w.Header().Set("Location", "/elsewhere")
	if r.after != "" {
		w.Header().Set("Retry-After", r.after)
	}
	w.WriteHeader(status)
	h := req.Header.Clone()
	h.Set("Test-Path", req.Method+" "+req.URL.String())
	r.got <- received{h, body}
}

// idle is another part, so that a process without a secret has a queue to work on, as in production.
type idle struct{}

func (idle) Register(*river.Workers) (map[string]river.QueueConfig, error) {
	return map[string]river.QueueConfig{"idle": {MaxWorkers: 1}}, nil
}
func (idle) Use(*queue.Client) {}

// attempts is a queue that nobody works on.
type attempts struct{ jobs.Queue }

func (attempts) Enqueue(context.Context, *store.Tx, string, string, time.Time) (int64, error) {
	return 1, nil
}
func (attempts) Stop(string) {}

type closed struct{}

func (closed) Check(context.Context, *ent.Client, *tasks.Definition, string) (gate.Decision, error) {
	return gate.Decision{State: gate.Missing}, nil
}

type known struct{}

func (known) Known(string) bool { return true }

type unheard struct{}

func (unheard) JobChanged(string) {}
func (unheard) RaceLost()         {}

func (unheard) AttemptSettled(string, string) {}

func catalog(t *testing.T) *tasks.Catalog {
	t.Helper()
	d, err := tasks.Load(fstest.MapFS{
		"plain/" + tasks.FileTask:         {Data: []byte("name: plain\nversion: v1\ntarget: demo/a\nretry: {max: 0, base: 1s, cap: 1m}\n")},
		"plain/" + tasks.FileInputSchema:  {Data: []byte(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
		"plain/" + tasks.FileOutputSchema: {Data: []byte(`{"type":"object","properties":{"answer":{"type":"string"}}}`)},
		"plain/" + tasks.FileSystem:       {Data: []byte("Answer.\n")},
		"plain/" + tasks.FilePrompt:       {Data: []byte("{{json .Input}}\n")},
	}, "plain")
	require.NoError(t, err)
	c, err := tasks.NewCatalog(d)
	require.NoError(t, err)
	return c
}
