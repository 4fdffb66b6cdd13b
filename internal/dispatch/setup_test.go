package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"go.jetify.com/typeid"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
	"github.com/docket-gateway/docket/providers"
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

// options of a process. Zero values mean the defaults in brackets.
type options struct {
	lease    time.Duration // [2m]
	places   int           // max_concurrency of the provider [8]
	circuit  providers.CircuitBreaker
	script   *script // what its provider does [ok for every request]
	registry *providers.Registry
	wrap     func(Jobs) Jobs // stands between the dispatcher and the service
	idle     bool            // do not start working
	log      io.Writer       // [the test's log]
}

// process is one docket as far as this package goes: its own queue, service and workers, on a database that it shares.
type process struct {
	*jobs.Service

	store   *store.Store
	queue   *Queue
	d       *Dispatcher
	script  *script
	refused refusals
	ann     context.Context
	sys     context.Context
}

// start runs a process until the test ends.
func start(t *testing.T, address string, o options) *process {
	t.Helper()
	ctx := t.Context()
	st, err := store.Open(ctx, address, store.WithMaxConns(8))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	p := &process{store: st, script: o.script, sys: viewer.NewSystemContext(ctx),
		ann: viewer.NewContext(ctx, viewer.Viewer{Issuer: "test", Subject: "ann"})}
	if p.script == nil {
		p.script = newScript(nil)
	}
	if o.places == 0 {
		o.places = 8
	}
	if o.registry == nil {
		o.registry = scripted(t, p.script, providers.Config{Name: "fake", MaxConcurrency: o.places, CircuitBreaker: o.circuit})
	}
	if o.log == nil {
		o.log = logTo{t}
	}
	log := slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	p.queue = NewQueue(QueueOptions{Registry: o.registry, Logger: log})
	_, err = queue.Open(st, queue.Options{Logger: log}, p.queue)
	require.NoError(t, err)
	p.Service = jobs.New(jobs.Deps{
		Store: st, Catalog: catalog(t), Queue: p.queue, Gate: openGate{}, Targets: known{o.registry}, Notifier: nobody{},
		Metrics: nobody{}, Logger: log,
	}, jobs.Options{Lease: cmp.Or(o.lease, 2*time.Minute)})
	var j Jobs = p.Service
	if o.wrap != nil {
		j = o.wrap(j)
	}
	p.d = New(p.queue, j, o.registry, &p.refused, log)
	if !o.idle {
		p.work(t)
	}
	return p
}

// scripted returns a registry in which the script stands for every provider. Each has the models a, b and c.
func scripted(t *testing.T, s *script, configs ...providers.Config) *providers.Registry {
	t.Helper()
	for i := range configs {
		configs[i].Kind, configs[i].BaseURL = "scripted", "http://127.0.0.1:1"
		configs[i].Models = []providers.Model{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	}
	r, err := providers.NewRegistry(configs,
		map[string]providers.Factory{"scripted": func(providers.Config) (providers.Provider, error) { return s, nil }})
	require.NoError(t, err)
	return r
}

// work starts the workers and stops them, at the latest, when the test ends.
func (p *process) work(t *testing.T) {
	t.Helper()
	require.NoError(t, p.d.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, p.stop(0)) })
}

// stop stops the workers. It may be called again.
func (p *process) stop(bound time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	return p.d.Stop(ctx)
}

// create makes a job of the task and returns it with its first attempt.
func (p *process) create(t *testing.T, task string) (*ent.Job, *ent.Attempt) {
	t.Helper()
	return p.createWith(t, jobs.CreateInput{Task: task})
}

func (p *process) createWith(t *testing.T, in jobs.CreateInput) (*ent.Job, *ent.Attempt) {
	t.Helper()
	in.IdempotencyKey, in.Input = new(typeid.Must(typeid.WithPrefix("key")).String()), json.RawMessage(`{"text":"a"}`)
	c, err := p.Create(p.ann, in)
	require.NoError(t, err)
	return c.Job, p.attempts(t, c.Job.ID)[0]
}

func (p *process) attempts(t *testing.T, jobID string) []*ent.Attempt {
	t.Helper()
	as, err := p.store.Client().Attempt.Query().Where(attempt.JobID(jobID)).Order(ent.Asc(attempt.FieldNumber)).All(p.sys)
	require.NoError(t, err)
	return as
}

func (p *process) attempt(t *testing.T, id string) *ent.Attempt {
	t.Helper()
	a, err := p.store.Client().Attempt.Get(p.sys, id)
	require.NoError(t, err)
	return a
}

func (p *process) job(t *testing.T, id string) *ent.Job {
	t.Helper()
	j, err := p.store.Client().Job.Get(p.sys, id)
	require.NoError(t, err)
	return j
}

// becomes waits until the attempt has the state.
func (p *process) becomes(t *testing.T, attemptID string, want attempt.State) *ent.Attempt {
	t.Helper()
	var a *ent.Attempt
	await.Until(t, fmt.Sprintf("attempt %s becomes %s", attemptID, want), func() bool { a = p.attempt(t, attemptID); return a.State == want },
		func() string { return fmt.Sprint(a.State, " ", codeOf(a)) })
	return a
}

func codeOf(a *ent.Attempt) string {
	if a.ErrorCode == nil {
		return ""
	}
	return *a.ErrorCode
}

// exec runs a statement past all of our code.
func (p *process) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := p.store.DB().ExecContext(t.Context(), statement, args...)
	require.NoError(t, err)
}

// number reads one number past all of our code.
func (p *process) number(t *testing.T, query string) (n int) {
	t.Helper()
	require.NoError(t, p.store.DB().QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

// drained waits until no entry is being worked on or waits.
func (p *process) drained(t *testing.T) {
	t.Helper()
	await.Until(t, "the queue runs empty", func() bool { return p.number(t, "SELECT count(*) FROM river_job WHERE finalized_at IS NULL") == 0 })
}

type known struct{ *providers.Registry }

func (k known) Known(target string) bool { _, ok := k.Lookup(target); return ok }

type openGate struct{}

func (openGate) Check(context.Context, *ent.Client, *tasks.Definition, string) (gate.Decision, error) {
	return gate.Decision{Allowed: true, State: gate.Passed}, nil
}

type nobody struct{}

func (nobody) JobChanged(string) {}
func (nobody) RaceLost()         {}

func (nobody) AttemptSettled(string, string) {}

// refusals counts what circuits did not let through, by target.
type refusals struct{ sync.Map }

func (r *refusals) CircuitRefused(target string) {
	n, _ := r.LoadOrStore(target, new(atomic.Int32))
	n.(*atomic.Int32).Add(1)
}

func (r *refusals) Cancelled(target string, ok bool) {
	r.CircuitRefused(fmt.Sprint("cancel ", target, " ", ok))
}

func (r *refusals) of(target string) int {
	n, ok := r.Load(target)
	if !ok {
		return 0
	}
	return int(n.(*atomic.Int32).Load())
}

// logTo is the test's log, as long as the test runs.
type logTo struct{ t *testing.T }

func (l logTo) Write(b []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Log(string(b))
	}
	return len(b), nil
}

// catalog has the tasks of the tests:
//
//   - single: no fallback, no retry
//   - route: a fallback, no retry
//   - retry: retries soon, no fallback
//   - patient: retries once, soon or after a long Retry-After
//   - later: retries after 2 to 4 seconds
//   - race: may race, hedges after 200 ms of silence at two fallbacks
//   - broken: its prompt cannot be rendered
func catalog(t *testing.T) *tasks.Catalog {
	t.Helper()
	var defs []*tasks.Definition
	for name, more := range map[string]string{
		"single":  "retry: {max: 0}",
		"route":   "fallbacks: [fake/b]\nretry: {max: 0}",
		"retry":   "retry: {max: 2, base: 20ms, cap: 1s}",
		"patient": "retry: {max: 1, base: 20ms, cap: 30s}",
		"later":   "retry: {max: 1, base: 4s, cap: 4s}",
		"race":    "fallbacks: [fake/b, fake/c]\nrace: allowed\nhedge_after: 200ms\nretry: {max: 0}",
		"broken":  "retry: {max: 0}",
	} {
		prompt := "{{json .Input}}\n"
		if name == "broken" {
			prompt = "{{.Input.text.nothing.there}}\n"
		}
		fsys := fstest.MapFS{}
		for file, text := range map[string]string{
			tasks.FileTask:         "name: " + name + "\nversion: v1\ntarget: fake/a\n" + more + "\n",
			tasks.FileInputSchema:  `{"type":"object","required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"}}}`,
			tasks.FileOutputSchema: `{"type":"object","required":["answer"],"properties":{"answer":{"type":"string"}}}`,
			tasks.FileSystem:       "Answer.\n", tasks.FilePrompt: prompt,
		} {
			fsys[name+"/"+file] = &fstest.MapFile{Data: []byte(text)}
		}
		d, err := tasks.Load(fsys, name)
		require.NoError(t, err)
		defs = append(defs, d)
	}
	c, err := tasks.NewCatalog(defs...)
	require.NoError(t, err)
	return c
}
