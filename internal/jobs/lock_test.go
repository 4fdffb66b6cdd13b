package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every creation or move of an attempt holds its job's row from the first look to the commit. SQLite's transactions hold
// the whole database.
func TestLocksTheJobBeforeItLooks(t *testing.T) {
	t.Parallel()
	b := setup(t, databases.DSN(t))
	for name, change := range map[string]func(t *testing.T, jobID, attemptID string) error{
		"start at a target": func(t *testing.T, jobID, attemptID string) error {
			t.Helper()
			_, err := b.CancelAttempt(b.ann, attemptID, nil)
			require.NoError(t, err)
			_, err = b.StartAttempt(b.ann, jobID, new("demo/b"))
			return err
		},
		"start the next": func(t *testing.T, jobID, _ string) error {
			t.Helper()
			_, err := b.StartAttempt(b.ann, jobID, nil)
			return err
		},
		"fail": func(t *testing.T, _, attemptID string) error {
			t.Helper()
			_, err := b.Settle(t.Context(), attemptID, Outcome{Failure: &Failure{Code: "X"}})
			return err
		},
		"hedge": func(t *testing.T, _, attemptID string) error {
			t.Helper()
			return b.Hedge(t.Context(), attemptID)
		},
	} {
		b.gate.hook = nil
		j := b.create(t, "race")
		a := b.last(t, j.ID)
		b.running(t, a)
		asked := 0
		b.gate.hook = func() { // in the middle of the change
			asked++
			err := b.exec(t, "SELECT id FROM jobs WHERE id = '"+j.ID+"' FOR UPDATE NOWAIT")
			require.ErrorContains(t, err, "could not obtain lock", name)
		}
		require.NoError(t, change(t, j.ID, a.ID), name)
		require.Positive(t, asked, name)
	}
}
