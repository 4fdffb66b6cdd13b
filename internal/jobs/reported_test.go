package jobs

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

func TestSettleReported(t *testing.T) {
	t.Parallel()

	t.Run("ClaimsFromEveryStateAfterSending", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, unknown := b.unknown(t, "plain")
			running := b.last(t, b.create(t, "plain").ID)
			b.running(t, running)
			sent := b.last(t, b.create(t, "plain").ID)
			b.sent(t, sent)
			for _, a := range []string{unknown.ID, running.ID, sent.ID} {
				v, err := b.SettleReported(t.Context(), "demo", a, answer("told"))
				require.NoError(t, err)
				require.True(t, v.Landed)
				require.Equal(t, attempt.StateSUCCEEDED, v.Attempt.State)
				require.Equal(t, job.StateSUCCEEDED, v.Job.State)
				require.Contains(t, b.details(t, v.Job.ID), `"settledBy":"callback"`)
			}
			require.Equal(t, []string{"SUCCEEDED callback", "SUCCEEDED callback", "SUCCEEDED callback"}, b.metrics.ends())
		})
	})

	t.Run("HoldsOutputToTheSchema", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for _, bad := range []string{`{"answer":1}`, `{"answer":"a","more":1}`, "```json\n{\"answer\":\"a\"}\n```", ""} {
				j, a := b.unknown(t, "single")
				v, err := b.SettleReported(t.Context(), "demo", a.ID, Outcome{Output: json.RawMessage(bad)})
				require.NoError(t, err)
				require.True(t, v.Landed)
				require.Equal(t, attempt.StateFAILED, v.Attempt.State)
				require.Equal(t, job.StateFAILED, v.Job.State)
				require.Nil(t, b.job(t, j.ID).Result)
			}
		})
	})

	t.Run("GoesOnAfterAFailure", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			v, err := b.SettleReported(t.Context(), "demo", a.ID, Outcome{Failure: &Failure{Code: "NO", Message: "no"}})
			require.NoError(t, err)
			require.True(t, v.Landed)
			require.Equal(t, "NO", *v.Attempt.ErrorCode)
			require.Equal(t, "demo/b", b.last(t, j.ID).Target)
			require.Contains(t, b.details(t, j.ID), `"settledBy":"callback"`)
		})
	})

	t.Run("ChangesNothingTheSecondTime", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			first, err := b.SettleReported(t.Context(), "demo", a.ID, answer("one"))
			require.NoError(t, err)
			for _, o := range []Outcome{answer("one"), answer("two"), {Failure: &Failure{Code: "NO"}}} {
				v, err := b.SettleReported(t.Context(), "demo", a.ID, o)
				require.NoError(t, err)
				require.False(t, v.Landed)
				require.Equal(t, attempt.StateSUCCEEDED, v.Attempt.State)
			}
			now := b.job(t, j.ID)
			require.JSONEq(t, `{"answer":"one"}`, string(now.Result))
			require.Equal(t, first.Job.LastEvent, now.LastEvent)
			require.Equal(t, first.Job.Version, now.Version)
		})
	})

	t.Run("SaysOfTheLoserOnlyThatItLost", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, first, second := b.race(t)
			v, err := b.SettleReported(t.Context(), "demo", second.ID, answer("told"))
			require.NoError(t, err)
			require.True(t, v.Landed)
			loser := b.attempt(t, first.ID)
			require.Equal(t, attempt.StateSUPERSEDED, loser.State)
			events, err := loser.QueryEvents().All(b.sys)
			require.NoError(t, err)
			require.NotContains(t, string(events[len(events)-1].Detail), "settledBy")
		})
	})

	t.Run("IsNotFoundElsewhereAndBeforeSending", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, a := b.unknown(t, "plain")
			waiting := b.last(t, b.create(t, "plain").ID)
			for _, tc := range [][2]string{{"other", a.ID}, {"dem", a.ID}, {"demo/a", a.ID}, {"demo", newID("att")}, {"demo", waiting.ID}} {
				_, err := b.SettleReported(t.Context(), tc[0], tc[1], answer("told"))
				require.ErrorIs(t, err, ErrNotFound, tc)
			}
			require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a.ID).State)
			require.Equal(t, attempt.StateSTARTING, b.attempt(t, waiting.ID).State)
			require.Empty(t, b.metrics.ends())
		})
	})
}
