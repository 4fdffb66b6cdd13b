package jobs

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tasks"
)

// fakeQueue keeps entries of committed transactions only.
type fakeQueue struct {
	mu      sync.Mutex
	next    int64
	entries map[int64]queued
	dead    map[int64]bool
	others  map[int64]bool // wait for a process that knows their provider
	stopped []string
	cancels []string // attempts that are to be cancelled at their provider
	err     error
}

type queued struct {
	attemptID string
	target    string
	due       time.Time
	unserved  bool
}

func newFakeQueue() *fakeQueue {
	return &fakeQueue{entries: map[int64]queued{}, dead: map[int64]bool{}, others: map[int64]bool{}}
}

func (q *fakeQueue) Enqueue(_ context.Context, tx *store.Tx, attemptID, target string, due time.Time) (int64, error) {
	return q.add(tx, queued{attemptID, target, due, false})
}

func (q *fakeQueue) EnqueueUnserved(_ context.Context, tx *store.Tx, attemptID, target string, due time.Time) (int64, error) {
	return q.add(tx, queued{attemptID, target, due, true})
}

func (q *fakeQueue) add(tx *store.Tx, entry queued) (int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return 0, q.err
	}
	q.next++
	id := q.next
	tx.AfterCommit(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.entries[id] = entry
	})
	return id, nil
}

func (q *fakeQueue) Look(_ context.Context, entries []int64, _, _ time.Duration) (map[int64]Entry, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	found := map[int64]Entry{}
	for _, e := range entries {
		switch _, ok := q.entries[e]; {
		case !ok || q.dead[e]:
		case q.others[e]:
			found[e] = EntryElsewhere
		default:
			found[e] = EntryAlive
		}
	}
	return found, q.err
}

func (q *fakeQueue) EnqueueCancel(_ context.Context, tx *store.Tx, attemptID string) error {
	tx.AfterCommit(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.cancels = append(q.cancels, attemptID)
	})
	return nil
}

// cancelled returns the attempts that are to be cancelled at their provider, in order.
func (q *fakeQueue) cancelled() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.cancels)
}

func (q *fakeQueue) Stop(attemptID string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = append(q.stopped, attemptID)
}

func (q *fakeQueue) hasStopped(attemptID string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Contains(q.stopped, attemptID)
}

// of returns the entries of an attempt, oldest first.
func (q *fakeQueue) of(attemptID string) []int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	var ids []int64
	for id, e := range q.entries {
		if e.attemptID == attemptID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (q *fakeQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries)
}

// kill takes an entry away, as if its worker had died with it.
func (q *fakeQueue) kill(id int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead[id] = true
}

// strand leaves an entry to processes that know its provider.
func (q *fakeQueue) strand(id int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.others[id] = true
}

func (q *fakeQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
}

// fakeGate is open unless a target was closed.
type fakeGate struct {
	mu     sync.Mutex
	closed map[string]bool
	err    error
	asked  []string
	hook   func() // called without the lock
}

func (g *fakeGate) Check(_ context.Context, _ *ent.Client, task *tasks.Definition, target string) (gate.Decision, error) {
	g.mu.Lock()
	hook := g.hook
	g.asked = append(g.asked, task.Digest+" "+target)
	closed, err := g.closed[target], g.err
	g.mu.Unlock()
	if hook != nil {
		hook()
	}
	if err != nil {
		return gate.Decision{}, err
	}
	if closed {
		return gate.Decision{State: gate.Failed, Reasons: []string{"The check schema failed."}}, nil
	}
	return gate.Decision{Allowed: true, State: gate.Passed}, nil
}

func (g *fakeGate) close(targets ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = map[string]bool{}
	}
	for _, target := range targets {
		g.closed[target] = true
	}
}

func (g *fakeGate) toggle(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = map[string]bool{}
	}
	g.closed[target] = !g.closed[target]
}

func (g *fakeGate) isClosed(target string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed[target]
}

// fakeTargets knows every target of the test tasks unless it was removed.
type fakeTargets struct {
	mu      sync.Mutex
	removed []string
}

func (f *fakeTargets) Known(target string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains([]string{"demo/a", "demo/b", "demo/c", "demo/d"}, target) && !slices.Contains(f.removed, target)
}

func (f *fakeTargets) remove(target string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed = append(f.removed, target)
}

// fakeNotifier counts the notices of each job.
type fakeNotifier struct {
	mu   sync.Mutex
	seen map[string]int
}

func newFakeNotifier() *fakeNotifier { return &fakeNotifier{seen: map[string]int{}} }

func (n *fakeNotifier) JobChanged(jobID string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen[jobID]++
}

func (n *fakeNotifier) count(jobID string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen[jobID]
}

type fakeMetrics struct {
	mu      sync.Mutex
	lost    int
	settled []string // "state via"
}

func (m *fakeMetrics) AttemptSettled(state, via string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settled = append(m.settled, state+" "+via)
}

func (m *fakeMetrics) ends() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.settled)
}

func (m *fakeMetrics) RaceLost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost++
}

func (m *fakeMetrics) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

type testTasks struct {
	byName  map[string]*tasks.Definition
	catalog *tasks.Catalog
}

const (
	testInput  = `{"type":"object","required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"},"n":{},"more":{"type":"object","additionalProperties":{"type":"integer"}}}}`
	testOutput = `{"type":"object","required":["answer"],"properties":{"answer":{"type":"string"},"inner":{"type":"object","properties":{"x":{}}}}}`
)

// allTasks are the tasks of the tests:
//
//   - plain: no racing, two fallbacks, two retries
//   - race: the same, but attempts may race
//   - single: no fallback, no retry
//   - any: its output may be any JSON scalar
func allTasks(t *testing.T) testTasks {
	t.Helper()
	const retry = "retry: {max: 2, base: 1s, cap: 1m}\n"
	return someTasks(t,
		testTask{"plain", "fallbacks: [demo/b, demo/c]\n" + retry, testOutput},
		testTask{"race", "fallbacks: [demo/b, demo/c]\nrace: allowed\n" + retry, testOutput},
		testTask{"single", "retry: {max: 0, base: 1s, cap: 1m}\n", testOutput},
		testTask{"any", "", `{"type":["number","string","null","boolean"]}`},
	)
}

type testTask struct{ name, yaml, output string }

func someTasks(t *testing.T, list ...testTask) testTasks {
	t.Helper()
	out := testTasks{byName: map[string]*tasks.Definition{}}
	var defs []*tasks.Definition
	for _, task := range list {
		fsys := fstest.MapFS{}
		for name, text := range map[string]string{
			tasks.FileTask:        "name: " + task.name + "\nversion: v1\ntarget: demo/a\n" + task.yaml,
			tasks.FileInputSchema: testInput, tasks.FileOutputSchema: task.output,
			tasks.FileSystem: "Answer.\n", tasks.FilePrompt: "{{json .Input}}\n",
		} {
			fsys[task.name+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
		d, err := tasks.Load(fsys, task.name)
		require.NoError(t, err)
		out.byName[task.name] = d
		defs = append(defs, d)
	}
	var err error
	out.catalog, err = tasks.NewCatalog(defs...)
	require.NoError(t, err)
	return out
}
