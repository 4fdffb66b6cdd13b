package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

// aged moves a time of an attempt into the past, by the database's clock.
func (b *testBundle) aged(t *testing.T, a *ent.Attempt, column string, by time.Duration) {
	t.Helper()
	require.NoError(t, b.exec(t, "UPDATE attempts SET "+column+" = "+b.store.Now(-by)+" WHERE id = '"+a.ID+"'"))
}

func TestSweepPresumedDead(t *testing.T) {
	t.Parallel()
	const after = time.Hour
	sweep := func(t *testing.T, b *testBundle) int {
		t.Helper()
		n, err := b.SweepPresumedDead(t.Context(), "demo", after)
		require.NoError(t, err)
		return n
	}

	t.Run("CancelsAndTheRouteGoesOn", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			b.aged(t, a, "sent_at", after+time.Minute)
			require.Equal(t, 1, sweep(t, b))
			require.Equal(t, 0, sweep(t, b))
			now := b.attempt(t, a.ID)
			require.Equal(t, attempt.StateCANCELLED, now.State)
			require.Equal(t, CodePresumedDead, *now.ErrorCode)
			require.NotNil(t, now.FinishedAt)
			next := b.last(t, j.ID)
			require.Equal(t, "demo/b", next.Target)
			require.Equal(t, attempt.ReasonFALLBACK, next.Reason)
			require.Len(t, b.queue.of(next.ID), 1)
			require.Equal(t, job.StateQUEUED, b.job(t, j.ID).State)
			require.Equal(t, 1, b.job(t, j.ID).Version, "no result slot moved")
			require.Contains(t, b.details(t, j.ID), `"settledBy":"presumed dead"`)
			require.True(t, b.queue.hasStopped(a.ID), "whoever still listens is told")
			b.replay(t, j.ID)

			// What it brings after that is dropped.
			require.False(t, b.settle(t, a, answer("late")).Landed)
			require.Empty(t, b.job(t, j.ID).Result)
		})
	})

	t.Run("FailsAJobWithoutAnotherCandidate", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "single")
			b.aged(t, a, "sent_at", after+time.Minute)
			require.Equal(t, 1, sweep(t, b))
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
			require.Equal(t, 2, b.job(t, j.ID).Version)
		})
	})

	t.Run("LeavesARacingAttemptToRunOn", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, first, second := b.race(t)
			b.loses(t, first)
			b.aged(t, first, "sent_at", after+time.Minute)
			b.aged(t, second, "sent_at", after+time.Minute)
			require.Equal(t, 1, sweep(t, b))
			require.Equal(t, attempt.StateRUNNING, b.attempt(t, second.ID).State, "only what is UNKNOWN is presumed dead")
			require.Equal(t, job.StateRUNNING, b.job(t, j.ID).State)
			require.Len(t, b.attempts(t, j.ID), 2)
		})
	})

	t.Run("LeavesAloneWhatIsNotOldOrElsewhereOrOff", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, a := b.unknown(t, "plain")
			require.Equal(t, 0, sweep(t, b), "not old")
			b.aged(t, a, "sent_at", after-time.Minute)
			require.Equal(t, 0, sweep(t, b), "not old enough")
			b.aged(t, a, "sent_at", 100*after)
			for _, provider := range []string{"dem", "demo/a", "d_mo", "%", ""} {
				n, err := b.SweepPresumedDead(t.Context(), provider, after)
				require.NoError(t, err)
				require.Zero(t, n, provider)
			}
			n, err := b.SweepPresumedDead(t.Context(), "demo", 0)
			require.NoError(t, err)
			require.Zero(t, n, "off")
			b.aged(t, a, "resent_at", after-time.Minute)
			require.Equal(t, 0, sweep(t, b), "it was sent again since")
			require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a.ID).State)
			b.aged(t, a, "resent_at", after+time.Minute)
			require.Equal(t, 1, sweep(t, b))
		})
	})

	// The sweeper finds it, then somebody settles it or sends it again, then the sweeper writes.
	t.Run("ChangesNothingWhenItComesSecond", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for name, first := range map[string]func(a *ent.Attempt){
				"settled":   func(a *ent.Attempt) { require.True(t, b.settle(t, a, answer("a")).Landed) },
				"failed":    func(a *ent.Attempt) { b.fails(t, a, false) },
				"sentAgain": func(a *ent.Attempt) { b.aged(t, a, "resent_at", 0) },
			} {
				j, a := b.unknown(t, "plain")
				b.aged(t, a, "sent_at", after+time.Minute)
				first(a)
				before, state := b.eventTypes(t, j.ID), b.attempt(t, a.ID).State
				require.ErrorIs(t, b.presumeDead(b.sys, a, b.silentFor(after)), errLost, name)
				require.Equal(t, before, b.eventTypes(t, j.ID), name)
				require.Equal(t, state, b.attempt(t, a.ID).State, name)
			}

			// A RUNNING attempt would be a legal source of the move, but nobody presumes it dead.
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			b.running(t, a)
			b.aged(t, a, "sent_at", after+time.Minute)
			require.ErrorIs(t, b.presumeDead(b.sys, a, b.silentFor(after)), errLost)
			require.Equal(t, attempt.StateRUNNING, b.attempt(t, a.ID).State)
		})
	})

	t.Run("SettlesEachOnceAmongManySweepers", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			var ids []string
			for range 4 {
				j, a := b.unknown(t, "plain")
				b.aged(t, a, "sent_at", after+time.Minute)
				ids = append(ids, j.ID)
			}
			all := 0
			for _, r := range inParallel(4, func(int) (int, error) { return b.SweepPresumedDead(t.Context(), "demo", after) }) {
				require.NoError(t, r.err)
				all += r.value
			}
			require.Equal(t, 4, all)
			for _, id := range ids {
				require.Len(t, b.attempts(t, id), 2)
				b.replay(t, id)
			}
		})
	})
}
