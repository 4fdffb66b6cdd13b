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
