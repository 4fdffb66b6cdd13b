package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

func TestHedge(t *testing.T) {
	t.Parallel()

	t.Run("RacesTheNextFallback", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.gate.close("demo/b")
			j := b.create(t, "race")
			a := b.last(t, j.ID)
			b.running(t, a)
			got := inParallel(8, func(int) (struct{}, error) { return struct{}{}, b.Hedge(t.Context(), a.ID) })
			for _, r := range got {
				require.NoError(t, r.err)
			}
			require.Len(t, b.attempts(t, j.ID), 2)
			h := b.last(t, j.ID)
			require.Equal(t, attempt.ReasonHEDGE, h.Reason)
			require.Equal(t, "demo/c", h.Target)
			require.Equal(t, a.JobVersion, h.JobVersion)
			require.Equal(t, job.StateRUNNING, b.job(t, j.ID).State)
			b.running(t, h)
			require.True(t, b.settle(t, h, answer("hedge")).Landed)
			require.Equal(t, attempt.StateSUPERSEDED, b.attempt(t, a.ID).State)
			require.True(t, b.queue.hasStopped(a.ID), "the loser is told to stop")
			require.False(t, b.queue.hasStopped(h.ID))
			b.replay(t, j.ID)
		})
	})

	t.Run("GoesOnWhenItWasRefusedBeforeItWasSent", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "race")
			a := b.last(t, j.ID)
			b.running(t, a)
			require.NoError(t, b.Hedge(t.Context(), a.ID))
			refuse := func() {
				l := b.take(t, b.last(t, j.ID))
				require.NoError(t, b.Refuse(t.Context(), l, Failure{Code: "NO", Message: "no", Retryable: true, RetryAfter: 1}))
			}
			refuse()
			h := b.last(t, j.ID)
			require.Equal(t, "demo/c", h.Target)
			require.Equal(t, attempt.ReasonHEDGE, h.Reason)
			require.Equal(t, attempt.StateSTARTING, h.State)
			refuse()
			require.Len(t, b.attempts(t, j.ID), 3, "no fallback is left")
			require.Equal(t, job.StateRUNNING, b.job(t, j.ID).State)
			b.replay(t, j.ID)
		})
	})

	t.Run("DoesNotGoOnBesideAnAttemptThatIsUnknown", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "race")
			a := b.last(t, j.ID)
			b.running(t, a)
			require.NoError(t, b.Hedge(t.Context(), a.ID))
			l := b.take(t, b.last(t, j.ID))
			b.loses(t, a)
			require.NoError(t, b.Refuse(t.Context(), l, Failure{Code: "NO", Message: "no"}))
			require.Len(t, b.attempts(t, j.ID), 2)
			require.Equal(t, job.StateUNKNOWN, b.job(t, j.ID).State)
		})
	})

	t.Run("DoesNotGoOnOnceItWasSent", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "race")
			a := b.last(t, j.ID)
			b.running(t, a)
			require.NoError(t, b.Hedge(t.Context(), a.ID))
			b.sent(t, b.last(t, j.ID))
			b.fails(t, b.last(t, j.ID), true)
			require.Len(t, b.attempts(t, j.ID), 2)
		})
	})

	t.Run("DoesNothingWhereRacingIsForbidden", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.running(t, b.last(t, j.ID))
			require.NoError(t, b.Hedge(t.Context(), b.last(t, j.ID).ID))
			require.Len(t, b.attempts(t, j.ID), 1)
		})
	})

	t.Run("DoesNothingUnlessTheAttemptRuns", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "race")
			a := b.last(t, j.ID)
			for _, step := range []func(){
				func() {},
				func() { b.sent(t, a) },
				func() { b.loses(t, a) },
				func() { _, err := b.CancelAttempt(b.ann, a.ID, nil); require.NoError(t, err) },
			} {
				step()
				before := b.eventTypes(t, j.ID)
				require.NoError(t, b.Hedge(t.Context(), a.ID))
				require.Len(t, b.attempts(t, j.ID), 1)
				require.Equal(t, before, b.eventTypes(t, j.ID))
			}
		})
	})

	t.Run("SaysOnceWhyAFallbackIsSkipped", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.gate.close("demo/b", "demo/c")
			j := b.create(t, "race")
			a := b.last(t, j.ID)
			b.running(t, a)
			require.NoError(t, b.Hedge(t.Context(), a.ID))
			before := b.eventTypes(t, j.ID)
			require.Len(t, before, 6)
			require.NoError(t, b.Hedge(t.Context(), a.ID), "silent again")
			require.Equal(t, before, b.eventTypes(t, j.ID))
		})
	})
}
