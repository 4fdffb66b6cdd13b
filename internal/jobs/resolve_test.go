package jobs

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	result := json.RawMessage(`{"answer":"by hand"}`)

	t.Run("ClaimsTheJobWithAResult", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			r, err := b.ResolveAttempt(b.op, Resolution{AttemptID: a.ID, Outcome: "SUCCEEDED", Result: result, Note: "seen in their console"})
			require.NoError(t, err)
			require.Equal(t, attempt.StateSUCCEEDED, r.Attempt.State)
			require.Equal(t, job.StateSUCCEEDED, r.Job.State)
			require.JSONEq(t, string(result), string(r.Job.Result))
			require.Equal(t, a.ID, *r.Job.CompletedByID)
			require.Equal(t, 2, r.Job.Version)
			require.Contains(t, b.details(t, j.ID), `"note":"seen in their console"`)
			require.Contains(t, b.details(t, j.ID), `"by":"olga"`)
		})
	})

	t.Run("GoesOnAfterFailedAndWaitsAfterCancelled", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			r, err := b.ResolveAttempt(b.op, Resolution{AttemptID: a.ID, Outcome: "FAILED", Note: "nothing there"})
			require.NoError(t, err)
			require.Equal(t, attempt.StateFAILED, r.Attempt.State)
			require.Equal(t, CodeResolved, *r.Attempt.ErrorCode)
			require.Equal(t, job.StateQUEUED, r.Job.State)
			require.Equal(t, "demo/b", b.last(t, j.ID).Target)
			require.Contains(t, b.details(t, j.ID), "nothing there")

			j, a = b.unknown(t, "plain")
			r, err = b.ResolveAttempt(b.op, Resolution{AttemptID: a.ID, Outcome: "CANCELLED", Note: "give up"})
			require.NoError(t, err)
			require.Equal(t, attempt.StateCANCELLED, r.Attempt.State)
			require.Equal(t, job.StateWAITING, r.Job.State)
			require.Contains(t, b.details(t, j.ID), "give up")
		})
	})

	t.Run("RefusesWhatBreaksTheRules", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			starting := b.last(t, b.create(t, "plain").ID)
			running := b.last(t, b.create(t, "plain").ID)
			b.running(t, running)
			before := b.eventTypes(t, j.ID)
			for _, tc := range []struct {
				name string
				r    Resolution
				path string
			}{
				{"no note", Resolution{a.ID, "FAILED", nil, " \n"}, "/note"},
				{"long note", Resolution{a.ID, "FAILED", nil, string(make([]byte, maxNote+1))}, "/note"},
				{"no result", Resolution{a.ID, "SUCCEEDED", nil, "n"}, "/result"},
				{"result of a failure", Resolution{a.ID, "FAILED", result, "n"}, "/result"},
				{"result of a cancellation", Resolution{a.ID, "CANCELLED", result, "n"}, "/result"},
				{"other state", Resolution{a.ID, "SUPERSEDED", nil, "n"}, "/outcome"},
				{"no state", Resolution{a.ID, "", nil, "n"}, "/outcome"},
				{"breaks the schema", Resolution{a.ID, "SUCCEEDED", json.RawMessage(`{"answer":1}`), "n"}, "/result/answer"},
				{"undeclared key", Resolution{a.ID, "SUCCEEDED", json.RawMessage(`{"answer":"a","inner":{"y":1}}`), "n"}, "/result/inner/y"},
				{"no JSON", Resolution{a.ID, "SUCCEEDED", json.RawMessage("```{}```"), "n"}, "/result"},
				{"null", Resolution{a.ID, "SUCCEEDED", json.RawMessage(`null`), "n"}, "/result"},
				{"STARTING", Resolution{starting.ID, "FAILED", nil, "n"}, "/attemptId"},
				{"RUNNING", Resolution{running.ID, "SUCCEEDED", result, "n"}, "/attemptId"},
				{"RUNNING, cancelled", Resolution{running.ID, "CANCELLED", nil, "n"}, "/attemptId"},
			} {
				_, err := b.ResolveAttempt(b.op, tc.r)
				var invalid *InvalidInputError
				require.ErrorAs(t, err, &invalid, tc.name)
				require.Equal(t, tc.path, invalid.Issues[0].Path, tc.name)
			}
			require.Equal(t, before, b.eventTypes(t, j.ID))
			require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a.ID).State)
		})
	})

	t.Run("TellsTheVerdictWhenItComesLate", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			require.True(t, b.settle(t, a, answer("in time")).Landed)
			before := b.eventTypes(t, j.ID)
			for _, r := range []Resolution{
				{a.ID, "SUCCEEDED", result, "n"}, {a.ID, "FAILED", nil, "n"}, {a.ID, "CANCELLED", nil, "n"},
				{a.ID, "SUCCEEDED", json.RawMessage(`{"broken":"canary-0c44"}`), "n"},
			} {
				_, err := b.ResolveAttempt(b.op, r)
				var finished *AttemptFinishedError
				require.ErrorAs(t, err, &finished)
				require.Equal(t, attempt.StateSUCCEEDED, finished.Attempt.State)
				require.JSONEq(t, `{"answer":"in time"}`, string(finished.Job.Result))
			}
			require.Equal(t, before, b.eventTypes(t, j.ID))
			require.Empty(t, b.find(t, "canary-0c44"))
			require.Empty(t, b.find(t, "by hand"))
		})
	})

	t.Run("HasOneWinnerAgainstTheWorker", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for range 6 {
				j, a := b.unknown(t, "plain")
				got := inParallel(2, func(i int) (bool, error) {
					if i == 0 {
						v, err := b.Settle(t.Context(), a.ID, answer("worker"))
						return v.Landed, err
					}
					_, err := b.ResolveAttempt(b.op, Resolution{a.ID, "SUCCEEDED", result, "n"})
					return err == nil, nil
				})
				require.NoError(t, got[0].err)
				require.NotEqual(t, got[0].value, got[1].value)
				require.Equal(t, got[0].value, string(b.job(t, j.ID).Result) == `{"answer":"worker"}`)
				require.Equal(t, 2, b.job(t, j.ID).Version)
			}
		})
	})
}
