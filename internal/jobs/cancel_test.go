package jobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

func TestCancel(t *testing.T) {
	t.Parallel()

	t.Run("LeavesTheJobToItsOwner", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			b.running(t, a)
			c, err := b.CancelAttempt(b.ann, a.ID, new("too slow"))
			require.NoError(t, err)
			require.Equal(t, attempt.StateCANCELLED, c.Attempt.State)
			require.Equal(t, CodeCancelled, *c.Attempt.ErrorCode)
			require.Equal(t, job.StateWAITING, c.Job.State)
			require.Equal(t, 1, c.Job.Version)
			require.Len(t, b.attempts(t, j.ID), 1, "it does not go on by itself")
			require.True(t, b.queue.hasStopped(a.ID))
			// What a transaction lets out keeps working.
			require.Equal(t, j.ID, c.Attempt.QueryJob().OnlyX(b.ann).ID)
			require.Equal(t, 1, c.Job.QueryAttempts().CountX(b.ann))
		})
	})

	t.Run("OfOneRacingAttemptLeavesTheOther", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, first, second := b.race(t)
			b.loses(t, second)
			c, err := b.CancelAttempt(b.ann, first.ID, nil)
			require.NoError(t, err)
			require.Equal(t, job.StateUNKNOWN, c.Job.State)
			require.True(t, b.settle(t, second, answer("b")).Landed)
		})
	})

	t.Run("TellsWhoWonWhenItComesLate", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, winner, loser := b.race(t)
			b.settle(t, winner, answer("a"))
			before := b.eventTypes(t, j.ID)
			for _, a := range []string{winner.ID, loser.ID} {
				_, err := b.CancelAttempt(b.ann, a, nil)
				var finished *AttemptFinishedError
				require.ErrorAs(t, err, &finished)
				require.Equal(t, a, finished.Attempt.ID)
				require.Equal(t, winner.ID, *finished.Job.CompletedByID)
				require.Equal(t, winner.ID, finished.Job.QueryCompletedBy().OnlyX(b.ann).ID)
			}
			_, err := b.CancelJob(b.ann, j.ID, nil)
			var done *JobFinishedError
			require.ErrorAs(t, err, &done)
			require.Equal(t, before, b.eventTypes(t, j.ID))
		})
	})

	t.Run("EitherWinsOrIsToldWhoDid", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for range 8 {
				j := b.create(t, "plain")
				a := b.last(t, j.ID)
				b.running(t, a)
				got := inParallel(2, func(i int) (bool, error) {
					if i == 0 {
						v, err := b.Settle(t.Context(), a.ID, answer("a"))
						return v.Landed, err
					}
					_, err := b.CancelJob(b.ann, j.ID, nil)
					return err == nil, nil
				})
				require.NoError(t, got[0].err)
				require.NotEqual(t, got[0].value, got[1].value, "exactly one of them")
				j = b.job(t, j.ID)
				require.Equal(t, 2, j.Version)
				require.Equal(t, got[0].value, j.State == job.StateSUCCEEDED)
				require.Equal(t, got[0].value, j.Result != nil)
				b.replay(t, j.ID)
			}
		})
	})

	t.Run("OfAJobEndsEverythingInOneStep", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, first, second := b.race(t)
			b.loses(t, second)
			done, err := b.CancelJob(b.ann, j.ID, new("never mind"))
			require.NoError(t, err)
			require.Equal(t, job.StateCANCELLED, done.State)
			require.Equal(t, 2, done.Version)
			require.Equal(t, attempt.StateCANCELLED, b.attempt(t, first.ID).State)
			require.Equal(t, attempt.StateCANCELLED, b.attempt(t, second.ID).State)
			_, err = b.CancelJob(b.ann, j.ID, nil)
			require.ErrorAs(t, err, new(*JobFinishedError))
			require.Contains(t, string(b.lastEvent(t, j.ID).Detail), "never mind")
		})
	})

	t.Run("OfAJobEndsARetryThatWaits", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.fails(t, b.last(t, j.ID), true)
			retry := b.last(t, j.ID)
			_, err := b.CancelJob(b.ann, j.ID, nil)
			require.NoError(t, err)
			_, err = b.Take(t.Context(), retry.ID, *retry.QueueEntry)
			require.ErrorIs(t, err, ErrNotYours)
		})
	})

	t.Run("RefusesALongNoteAndChangesNothing", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			note := strings.Repeat("n", maxNote+1)
			var bad *InvalidInputError
			_, err := b.CancelAttempt(b.ann, a.ID, &note)
			require.ErrorAs(t, err, &bad)
			require.Equal(t, "/note", bad.Issues[0].Path)
			_, err = b.CancelJob(b.ann, j.ID, &note)
			require.ErrorAs(t, err, &bad)
			require.Equal(t, attempt.StateSTARTING, b.last(t, j.ID).State)
		})
	})

	t.Run("EndsAWaitingJob", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			_, err := b.CancelAttempt(b.ann, a.ID, nil)
			require.NoError(t, err)
			done, err := b.CancelJob(b.ann, j.ID, nil)
			require.NoError(t, err)
			require.Equal(t, job.StateCANCELLED, done.State)
		})
	})
}
