package jobs

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
)

func TestKeepHandle(t *testing.T) {
	t.Parallel()

	t.Run("AnUnknownAttemptIsAskedAboutByIt", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			b.askable(t, byHandle, a, false, "no handle")
			before := b.eventTypes(t, j.ID)
			require.NoError(t, b.KeepHandle(t.Context(), a.ID, "req-2", "handle-1"))
			require.NoError(t, b.KeepHandle(t.Context(), a.ID, "req-3", "handle-2"))
			require.NoError(t, b.KeepHandle(t.Context(), a.ID, "req-4", ""))
			now := b.attempt(t, a.ID)
			require.Equal(t, attempt.StateUNKNOWN, now.State)
			require.Equal(t, "handle-1", *now.ProviderHandle, "the first one stays")
			require.Equal(t, "req-2", *now.ProviderRequestID)
			require.Equal(t, before, b.eventTypes(t, j.ID), "nothing moved")
			require.Empty(t, b.queue.cancelled())
			b.askable(t, byHandle, a, true, "there is a handle")
		})
	})

	t.Run("AnAcknowledgementAfterUnknownBringsIt", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			l := b.sent(t, a)
			b.expireLeases(t)
			_, err := b.SweepLeases(t.Context())
			require.NoError(t, err)
			require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a.ID).State)
			require.NoError(t, b.Acknowledge(t.Context(), l, "req-1", "handle-1"))
			now := b.attempt(t, a.ID)
			require.Equal(t, attempt.StateUNKNOWN, now.State)
			require.Equal(t, "handle-1", *now.ProviderHandle)
			b.askable(t, byHandle, a, true, "there is a handle")
		})
	})

	t.Run("WhatIsOverNeedsNone", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, won := b.unknown(t, "single")
			require.True(t, b.settle(t, won, answer("a")).Landed)
			_, lost := b.unknown(t, "single")
			require.True(t, b.fails(t, lost, false).Landed)
			for _, id := range []string{won.ID, lost.ID} {
				require.NoError(t, b.KeepHandle(t.Context(), id, "", "handle-1"))
				require.Nil(t, b.attempt(t, id).ProviderHandle)
				_, err := b.Abandoned(t.Context(), id)
				require.ErrorIs(t, err, ErrNotYours)
			}
			require.Empty(t, b.queue.cancelled())
			require.ErrorIs(t, b.KeepHandle(t.Context(), newID("att"), "", "handle-1"), ErrNotFound)
		})
	})

	t.Run("WhatWasGivenUpBeforeIsCancelledByIt", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, a := b.unknown(t, "plain")
			_, err := b.CancelAttempt(b.ann, a.ID, nil)
			require.NoError(t, err)
			require.Empty(t, b.queue.cancelled(), "there is nothing to cancel by")
			for range 2 {
				require.NoError(t, b.KeepHandle(t.Context(), a.ID, "", "handle-1"))
			}
			require.Equal(t, []string{a.ID}, b.queue.cancelled())
			require.Equal(t, attempt.StateCANCELLED, b.attempt(t, a.ID).State)
		})
	})

	t.Run("IsCancelledOnceWhoeverComesFirst", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for range 10 {
				j, a := b.unknown(t, "plain")
				before := len(b.queue.cancelled())
				var both sync.WaitGroup
				var kept, cancelled error
				both.Go(func() { kept = b.KeepHandle(t.Context(), a.ID, "", "handle-1") })
				both.Go(func() { _, cancelled = b.CancelJob(b.ann, j.ID, nil) })
				both.Wait()
				require.NoError(t, kept)
				require.NoError(t, cancelled)
				require.Equal(t, "handle-1", *b.attempt(t, a.ID).ProviderHandle)
				require.Equal(t, []string{a.ID}, b.queue.cancelled()[before:])
			}
		})
	})
}

// Whoever gives an attempt up, its provider is to be told.
func TestWhatIsGivenUpIsToBeCancelledAtItsProvider(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		var want []string
		gone := func(id string, state attempt.State) {
			t.Helper()
			want = append(want, id)
			require.Equal(t, state, b.attempt(t, id).State)
			require.Equal(t, want, b.queue.cancelled())
			a, err := b.Abandoned(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, "handle-1", *a.ProviderHandle)
			require.Equal(t, a.JobID, a.Edges.Job.ID)
		}
		j, byJob := b.withHandle(t, 0)
		_, err := b.Abandoned(t.Context(), byJob.ID)
		require.ErrorIs(t, err, ErrNotYours, "it is open")
		_, err = b.CancelJob(b.ann, j.ID, nil)
		require.NoError(t, err)
		gone(byJob.ID, attempt.StateCANCELLED)

		_, byHand := b.withHandle(t, 0)
		_, err = b.CancelAttempt(b.ann, byHand.ID, nil)
		require.NoError(t, err)
		gone(byHand.ID, attempt.StateCANCELLED)

		_, dead := b.withHandle(t, 0)
		b.aged(t, dead, "sent_at", time.Hour)
		n, err := b.SweepPresumedDead(t.Context(), "demo", time.Minute)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		gone(dead.ID, attempt.StateCANCELLED)

		raced := b.create(t, "race")
		first := b.last(t, raced.ID)
		require.NoError(t, b.Acknowledge(t.Context(), b.sent(t, first), "", "handle-1"))
		second, err := b.StartAttempt(b.ann, raced.ID, nil)
		require.NoError(t, err)
		require.NoError(t, b.Acknowledge(t.Context(), b.sent(t, second.Attempt), "", "handle-1"))
		require.True(t, b.settle(t, second.Attempt, answer("a")).Landed)
		gone(first.ID, attempt.StateSUPERSEDED)

		_, without := b.unknown(t, "plain")
		_, err = b.CancelAttempt(b.ann, without.ID, nil)
		require.NoError(t, err)
		_, err = b.Abandoned(t.Context(), without.ID)
		require.ErrorIs(t, err, ErrNotYours)
		require.Equal(t, want, b.queue.cancelled(), "there is nothing to cancel by, and a winner is not cancelled")
	})
}
