package queue

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/store"
)

type entry struct{}

func (entry) Kind() string { return "entry" }

// part works on a queue of its name.
type part struct {
	river.WorkerDefaults[entry]

	name    string
	workers int
	err     error
	client  *Client
	worked  chan int64
}

func (p *part) Register(w *river.Workers) (map[string]river.QueueConfig, error) {
	if p.err != nil {
		return nil, p.err
	}
	return map[string]river.QueueConfig{p.name: {MaxWorkers: p.workers}}, river.AddWorkerSafely(w, p)
}

func (p *part) Use(c *Client) { p.client = c }

func (p *part) Work(_ context.Context, e *river.Job[entry]) error {
	p.worked <- e.ID
	return errors.New("not this time")
}

// other is a part without entries.
type other struct{}

func (other) Register(*river.Workers) (map[string]river.QueueConfig, error) {
	return map[string]river.QueueConfig{"other": {MaxWorkers: 1}}, nil
}
func (other) Use(*Client) {}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "docket.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

func TestWorksOnThePartsQueuesWithOneTryUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	p := &part{name: "entries", workers: 1, worked: make(chan int64, 10)}
	c, err := Open(openStore(t), Options{}, p, other{})
	require.NoError(t, err)
	require.Same(t, c, p.client)
	events, unsubscribe := c.Subscribe(river.EventKindJobFailed)
	defer unsubscribe()
	require.NoError(t, c.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() { require.NoError(t, c.Stop(context.WithoutCancel(t.Context()))) })
	res, err := c.Insert(t.Context(), entry{}, &river.InsertOpts{Queue: "entries"})
	require.NoError(t, err)
	e := await.Receive(t, "the entry is worked on", events)
	require.Equal(t, res.Job.ID, e.Job.ID)
	require.Equal(t, rivertype.JobStateDiscarded, e.Job.State)
	require.Len(t, p.worked, 1)
}

// Polling often would find entries too, but each queue polls by itself.
func TestEntriesAreNoticedWithoutAPoll(t *testing.T) {
	t.Parallel()
	p := &part{name: "entries", workers: 1, worked: make(chan int64, 10)}
	s := openStore(t)
	c, err := Open(s, Options{PollInterval: time.Hour}, p)
	require.NoError(t, err)
	require.NoError(t, c.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() { require.NoError(t, c.Stop(context.WithoutCancel(t.Context()))) })
	// The first entries may be found by the look with which the queue begins.
	for range 3 {
		tx, err := s.DB().BeginTx(t.Context(), nil)
		require.NoError(t, err)
		res, err := c.InsertTx(t.Context(), tx, entry{}, &river.InsertOpts{Queue: "entries"})
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		require.Equal(t, res.Job.ID, await.Receive(t, "the entry is worked on", p.worked))
	}
}

// A process may add entries that others work on, and still know their kind.
func TestTakesEntriesThatItDoesNotWorkOn(t *testing.T) {
	t.Parallel()
	p := &part{name: "entries", worked: make(chan int64, 10)}
	c, err := Open(openStore(t), Options{}, other{}, p)
	require.NoError(t, err)
	require.NoError(t, c.Start(context.WithoutCancel(t.Context())))
	res, err := c.Insert(t.Context(), entry{}, &river.InsertOpts{Queue: "entries"})
	require.NoError(t, err)
	require.NoError(t, c.Stop(context.WithoutCancel(t.Context())))
	j, err := c.JobGet(t.Context(), res.Job.ID)
	require.NoError(t, err)
	require.Equal(t, rivertype.JobStateAvailable, j.State)
}

func TestOpenFailsWithItsParts(t *testing.T) {
	t.Parallel()
	s, boom := openStore(t), errors.New("boom")
	_, err := Open(s, Options{}, &part{err: boom})
	require.ErrorIs(t, err, boom)
	_, err = Open(s, Options{}, &part{name: "a", workers: 1}, &part{name: "b", workers: 1})
	require.Error(t, err, "two workers for one kind")
}
