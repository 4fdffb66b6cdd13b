package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

var everyState = []attempt.State{
	attempt.StateSTARTING, attempt.StateRUNNING, attempt.StateUNKNOWN, attempt.StateSUCCEEDED, attempt.StateFAILED,
	attempt.StateCANCELLED, attempt.StateSUPERSEDED,
}

// The list is written out again here, as the design has it: a change of the table must be meant.
func TestMovesAreTheDesignsList(t *testing.T) {
	t.Parallel()
	legal := map[string]bool{}
	for _, m := range []string{
		"STARTING RUNNING", "STARTING FAILED", "STARTING UNKNOWN", "STARTING CANCELLED", "STARTING SUCCEEDED", "STARTING SUPERSEDED",
		"RUNNING SUCCEEDED", "RUNNING FAILED", "RUNNING UNKNOWN", "RUNNING CANCELLED", "RUNNING SUPERSEDED",
		"UNKNOWN SUCCEEDED", "UNKNOWN FAILED", "UNKNOWN CANCELLED", "UNKNOWN SUPERSEDED",
	} {
		legal[m] = true
	}
	for _, to := range everyState {
		from := map[attempt.State]bool{}
		for _, s := range sources(to) {
			from[s] = true
		}
		for _, s := range everyState {
			require.Equal(t, legal[string(s)+" "+string(to)], from[s], "%s to %s", s, to)
		}
	}
}

func TestStateOfJobFollowsItsOpenAttempts(t *testing.T) {
	t.Parallel()
	const none = job.State("")
	for _, tc := range []struct {
		states []attempt.State
		want   job.State
	}{
		{nil, none},
		{[]attempt.State{"SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"}, none},
		{[]attempt.State{"STARTING"}, job.StateQUEUED},
		{[]attempt.State{"FAILED", "STARTING"}, job.StateQUEUED},
		{[]attempt.State{"UNKNOWN"}, job.StateUNKNOWN},
		{[]attempt.State{"UNKNOWN", "STARTING"}, job.StateUNKNOWN},
		{[]attempt.State{"UNKNOWN", "RUNNING"}, job.StateRUNNING},
		{[]attempt.State{"STARTING", "RUNNING"}, job.StateRUNNING},
	} {
		var as []*ent.Attempt
		for _, s := range tc.states {
			as = append(as, &ent.Attempt{State: s})
		}
		got, ok := whileOpen(as)
		require.Equal(t, tc.want, got, tc.states)
		require.Equal(t, tc.want != none, ok, tc.states)
	}
}

func TestWhatBlocksANewAttempt(t *testing.T) {
	t.Parallel()
	for _, s := range everyState {
		a := &ent.Attempt{State: s}
		require.Equal(t, s == "STARTING" || s == "UNKNOWN" || s == "RUNNING", blocks(a, false), s)
		require.Equal(t, s == "STARTING" || s == "UNKNOWN", blocks(a, true), s)
	}
}
