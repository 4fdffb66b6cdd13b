package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
)

func TestAccess(t *testing.T) {
	t.Parallel()

	t.Run("HidesJobsFromStrangers", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			before := b.eventTypes(t, j.ID)
			for _, jobID := range []string{j.ID, "job_nobody"} {
				_, err := b.StartAttempt(b.bob, jobID, nil)
				require.ErrorIs(t, err, ErrNotFound)
				_, err = b.CancelJob(b.bob, jobID, nil)
				require.ErrorIs(t, err, ErrNotFound)
			}
			for _, attemptID := range []string{a.ID, "att_nobody"} {
				_, err := b.CancelAttempt(b.bob, attemptID, nil)
				require.ErrorIs(t, err, ErrNotFound)
				_, err = b.ResolveAttempt(b.bob, Resolution{AttemptID: attemptID, Outcome: "FAILED", Note: "n"})
				require.ErrorIs(t, err, ErrNotFound, "not even FORBIDDEN, which would tell that it is there")
				// Nor does an invalid request tell.
				_, err = b.ResolveAttempt(b.bob, Resolution{AttemptID: attemptID})
				require.ErrorIs(t, err, ErrNotFound)
			}
			require.Equal(t, before, b.eventTypes(t, j.ID))
			require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a.ID).State)
		})
	})

	t.Run("RefusesEverythingWithoutViewer", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			_, err := b.StartAttempt(t.Context(), j.ID, nil)
			require.ErrorIs(t, err, ErrUnauthenticated)
			_, err = b.CancelJob(t.Context(), j.ID, nil)
			require.ErrorIs(t, err, ErrUnauthenticated)
			_, err = b.CancelAttempt(t.Context(), a.ID, nil)
			require.ErrorIs(t, err, ErrUnauthenticated)
			_, err = b.ResolveAttempt(t.Context(), Resolution{AttemptID: a.ID, Outcome: "FAILED", Note: "n"})
			require.ErrorIs(t, err, ErrUnauthenticated)
		})
	})

	t.Run("LetsOperatorsDoWhatOwnersMay", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			_, err := b.CancelAttempt(b.op, a.ID, nil)
			require.NoError(t, err)
			_, err = b.StartAttempt(b.op, j.ID, nil)
			require.NoError(t, err)
			_, err = b.CancelJob(b.op, j.ID, nil)
			require.NoError(t, err)
			for _, e := range b.job(t, j.ID).QueryEvents().AllX(b.sys) {
				if e.Number > 6 { // what the operator did
					require.Contains(t, string(e.Detail), `"by":"olga"`, "event %d", e.Number)
				}
			}
		})
	})

	t.Run("LetsOnlyOperatorsResolve", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, a := b.unknown(t, "plain")
			_, err := b.ResolveAttempt(b.ann, Resolution{AttemptID: a.ID, Outcome: "FAILED", Note: "n"})
			require.ErrorIs(t, err, ErrForbidden)
			require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a.ID).State)
		})
	})
}
