package quota

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/store/storetest"
	"github.com/docket-gateway/docket/internal/viewer"
)

var databases = storetest.New()

func TestMain(m *testing.M) { databases.Main(m) }

func as(t *testing.T, subject string) context.Context {
	t.Helper()
	return viewer.NewContext(t.Context(), viewer.Viewer{Issuer: "test", Subject: subject})
}

// quotas are two processes that count together, or one twice where they cannot.
func quotas(t *testing.T, l Limits, f func(t *testing.T, a, b *Quota)) {
	t.Helper()
	t.Run("InOneProcess", func(t *testing.T) {
		t.Parallel()
		q, err := New(l, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		f(t, q, q)
	})
	t.Run("InPostgreSQL", func(t *testing.T) {
		t.Parallel()
		s, err := store.Open(t.Context(), databases.DSN(t))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		a, err := New(l, s.DB(), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		b, err := New(l, s.DB(), slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		f(t, a, b)
	})
}

func TestABurstPassesAndNoMore(t *testing.T) {
	t.Parallel()
	// One a minute: none is given back while the test runs.
	quotas(t, Limits{PerMinute: 1, Burst: 5}, func(t *testing.T, a, b *Quota) {
		var passed atomic.Int32
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if []*Quota{a, b}[i%2].Take(as(t, "ann")) == 0 {
					passed.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 5, passed.Load())
		wait := b.Take(as(t, "ann"))
		require.Greater(t, wait, 30*time.Second)
		require.LessOrEqual(t, wait, time.Minute)
		require.Zero(t, a.Take(as(t, "bob")), "every owner has its own")
		require.Zero(t, a.Take(t.Context()), "nobody's are not counted")
	})
}

func TestWaitingAsLongAsToldIsEnough(t *testing.T) {
	t.Parallel()
	quotas(t, Limits{PerMinute: 1200, Burst: 1}, func(t *testing.T, a, b *Quota) { // 50 ms
		for range 4 {
			wait := a.Take(as(t, "ann"))
			if wait == 0 {
				wait = b.Take(as(t, "ann"))
			}
			if wait == 0 { // the machine was slow, and the place is free already
				continue
			}
			require.LessOrEqual(t, wait, 51*time.Millisecond)
			time.Sleep(wait + time.Millisecond) //nolint:forbidigo // what is tested is that waiting is enough
			require.Zero(t, b.Take(as(t, "ann")))
		}
	})
}

func TestADatabaseThatCannotSayLetsRequestsPass(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), databases.DSN(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	q, err := New(Limits{PerMinute: 1, Burst: 1}, s.DB(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	_, err = s.DB().ExecContext(t.Context(), "DROP TABLE request_rates")
	require.NoError(t, err)
	require.Zero(t, q.Take(as(t, "ann")))
	require.Zero(t, q.Take(as(t, "ann")))
}

func TestSocketsOfAnOwnerAreCountedUntilTheyLeave(t *testing.T) {
	t.Parallel()
	q, err := New(Limits{Sockets: 2}, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	leave, ok := q.Enter(as(t, "ann"))
	require.True(t, ok)
	_, ok = q.Enter(as(t, "ann"))
	require.True(t, ok)
	_, ok = q.Enter(as(t, "ann"))
	require.False(t, ok)
	_, ok = q.Enter(as(t, "bob"))
	require.True(t, ok, "every owner has its own")
	leave()
	leave() // once is enough
	_, ok = q.Enter(as(t, "ann"))
	require.True(t, ok)
	_, ok = q.Enter(as(t, "ann"))
	require.False(t, ok)

	q, err = New(Limits{}, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for range 10 {
		_, ok = q.Enter(as(t, "ann"))
		require.True(t, ok, "no limit")
		require.Zero(t, q.Take(as(t, "ann")))
	}
}

func TestWhoHasLeftIsForgotten(t *testing.T) {
	t.Parallel()
	q, err := New(Limits{Sockets: 2}, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	leave, ok := q.Enter(as(t, "ann"))
	require.True(t, ok)
	require.Len(t, q.open, 1)
	leave()
	require.Empty(t, q.open)
}
