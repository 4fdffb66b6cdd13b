package gate_test

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
)

func TestWatcher(t *testing.T) {
	t.Parallel()
	databases.EachKind(t, testWatcher)
}

func testWatcher(t *testing.T, fresh func(tb testing.TB) string) {
	t.Helper()
	const target = "demo/laser"
	watcher := func(b *bundle) (*gate.Watcher, *bytes.Buffer) {
		var log bytes.Buffer
		return gate.NewWatcher(b.gate, b.client, slog.New(slog.NewTextHandler(&log, nil))), &log
	}
	events := func(t *testing.T, b *bundle) []gate.Event {
		t.Helper()
		list, err := gate.Events(t.Context(), b.client, "", "", 100)
		require.NoError(t, err)
		return list
	}

	t.Run("KeepsEachChangeOnce", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		w, log := watcher(b)
		look := func(want bool) {
			t.Helper()
			changed, err := w.Look(t.Context(), b.task, target)
			require.NoError(t, err)
			require.Equal(t, want, changed)
			again, err := w.Look(t.Context(), b.task, target)
			require.NoError(t, err)
			require.False(t, again)
		}
		look(false) // what was never proved is closed as before
		b.record(t, "sha256:v2", report.Live, report.Passed)
		look(true)
		require.Contains(t, log.String(), "level=INFO")
		b.record(t, "sha256:v2", report.Live, report.Passed)
		look(false)
		log.Reset()
		*b.now = b.now.Add(time.Hour)
		look(true)
		require.Contains(t, log.String(), "level=WARN")
		require.Contains(t, log.String(), `from=PASSED to=STALE`)
		b.record(t, "sha256:v2", report.Live, report.Failed)
		look(true)

		list := events(t, b)
		require.Len(t, list, 3)
		for i, want := range [][2]gate.State{{gate.Missing, gate.Passed}, {gate.Passed, gate.Stale}, {gate.Stale, gate.Failed}} {
			require.Equal(t, want, [2]gate.State{list[i].From, list[i].To})
			require.NotEmpty(t, list[i].ResultID)
		}
		require.Equal(t, []string{}, list[0].Reasons)
		require.Equal(t, []string{"The pass is 1h0m1s old; the task allows 1h0m0s."}, list[1].Reasons)
		require.Contains(t, list[2].Reasons[0], "check schema")
		changes, err := gate.Changes(t.Context(), b.client)
		require.NoError(t, err)
		require.ElementsMatch(t, []gate.Change{
			{Task: "triage", Target: target, To: gate.Passed, Count: 1}, {Task: "triage", Target: target, To: gate.Stale, Count: 1},
			{Task: "triage", Target: target, To: gate.Failed, Count: 1},
		}, changes)
	})

	t.Run("OneOfManyProcessesWritesIt", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		var wrote sync.Map
		var wg sync.WaitGroup
		for i := range 8 {
			w, _ := watcher(b)
			wg.Go(func() {
				changed, err := w.Look(t.Context(), b.task, target)
				if err != nil || changed {
					wrote.Store(i, err)
				}
			})
		}
		wg.Wait()
		n := 0
		wrote.Range(func(_, err any) bool { require.Nil(t, err); n++; return true })
		require.Equal(t, 1, n)
		require.Len(t, events(t, b), 1)
	})

	t.Run("ReplicasThatAreConfiguredOtherwiseDoNotWriteInTurn", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		w, _ := watcher(b)
		b.record(t, "sha256:v2", report.Live, report.Passed)
		_, err := w.Look(t.Context(), b.task, target)
		require.NoError(t, err)
		other := gate.NewWatcher(gate.New(current{"sha256:next", "sha256:cases"}, func() time.Time { return *b.now }), b.client, slog.New(slog.DiscardHandler))
		for range 3 {
			for _, w := range []*gate.Watcher{other, w} {
				_, err := w.Look(t.Context(), b.task, target)
				require.NoError(t, err)
			}
		}
		list := events(t, b)
		require.Len(t, list, 2)
		require.Equal(t, [2]gate.State{gate.Passed, gate.Stale}, [2]gate.State{list[1].From, list[1].To})
	})

	t.Run("LeavesGatesOfOthersAlone", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		w, _ := watcher(b)
		changed, err := w.Look(t.Context(), b.task, "nobody/there")
		require.NoError(t, err)
		require.False(t, changed)
	})

	t.Run("ListsByTaskAndTargetAndNewest", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fresh)
		w, _ := watcher(b)
		for _, status := range []report.Status{report.Passed, report.Failed, report.Passed} {
			b.record(t, "sha256:v2", report.Live, status)
			_, err := w.Look(t.Context(), b.task, target)
			require.NoError(t, err)
		}
		list, err := gate.Events(t.Context(), b.client, "triage", target, 2)
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Equal(t, gate.Failed, list[0].To)
		require.Equal(t, gate.Passed, list[1].To)
		for _, other := range [][2]string{{"invoice", ""}, {"", "demo/fax"}} {
			list, err := gate.Events(t.Context(), b.client, other[0], other[1], 2)
			require.NoError(t, err)
			require.Empty(t, list)
		}
	})
}
