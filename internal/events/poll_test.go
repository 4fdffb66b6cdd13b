package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/viewer"
)

// poll looks as often as it can until the test ends.
func poll(t *testing.T, h *Hub, read Heads) {
	t.Helper()
	ctx, cancel := context.WithCancel(viewer.NewSystemContext(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Poll(ctx, read, time.Millisecond, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func TestEventsAreFoundWithoutANotice(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bundle) {
		b.Changed = nil // every notice is lost
		j := b.Job(t, alice, "k")
		next := pull(t, b.follow.Events(as(t, alice), j.ID, 1))
		poll(t, b.hub, HeadsOf(b.Store.Client()))
		go b.Log(t, j.ID, "LATE")
		e, err, ok := next()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 2, e.Number)
	})
}

func TestThePollTellsThatAJobIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	next := pull(t, b.follow.Events(as(t, alice), j.ID, 1))
	poll(t, b.hub, func(ctx context.Context, ids []string) (map[string]int, error) {
		return map[string]int{}, nil // as if retention had taken it
	})
	go func() {
		for _, table := range []string{"job_events WHERE job_id", "jobs WHERE id"} {
			_, _ = b.Store.DB().ExecContext(t.Context(), "DELETE FROM "+table+" = ?", j.ID)
		}
	}()
	_, err, _ := next()
	require.ErrorIs(t, err, ErrNotFound)
}

func TestOneLookIsForAllWatchersAndWakesThoseBehindOnly(t *testing.T) {
	t.Parallel()
	h := NewHub()
	const jobs, each = 2500, 2
	var watches []*Watch
	for i := range jobs {
		for range each {
			w := h.Watch(fmt.Sprint(i))
			w.Saw(3)
			watches = append(watches, w)
		}
	}
	fresh := h.Watch("new") // has not looked yet
	statements, asked := 0, map[string]bool{}
	read := func(_ context.Context, ids []string) (map[string]int, error) {
		statements++
		require.LessOrEqual(t, len(ids), pollBatch)
		heads := map[string]int{}
		for _, id := range ids {
			require.False(t, asked[id], "twice")
			asked[id] = true
			heads[id] = 3
			if id == "7" {
				heads[id] = 4
			}
		}
		return heads, nil
	}
	require.NoError(t, h.lookOnce(t.Context(), read))
	require.Equal(t, 3, statements)
	require.Len(t, asked, jobs)
	woken := 0
	for _, w := range watches {
		if len(w.Changed) > 0 {
			require.Equal(t, "7", w.jobID)
			woken++
		}
	}
	require.Equal(t, each, woken)
	require.Empty(t, fresh.Changed)
}

func TestThePollGoesOnAfterAnErrorAndSaysItOnce(t *testing.T) {
	t.Parallel()
	h := NewHub()
	w := h.Watch("job_a")
	w.Saw(1)
	var mu sync.Mutex
	var text strings.Builder
	looks := 0
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Poll(ctx, func(context.Context, []string) (map[string]int, error) {
			if looks++; looks < 4 {
				return nil, errors.New("no database")
			}
			return map[string]int{"job_a": 2}, nil
		}, time.Millisecond, slog.New(slog.NewTextHandler(&lockedWriter{&mu, &text}, nil)))
	}()
	await.Receive(t, "the watcher is woken", w.Changed)
	cancel()
	<-done
	require.Equal(t, 1, strings.Count(text.String(), "could not be looked at"), text.String())
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *strings.Builder
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}
