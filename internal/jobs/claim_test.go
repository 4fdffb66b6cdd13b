package jobs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

func TestClaim(t *testing.T) {
	t.Parallel()

	t.Run("WritesTheResultOnce", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			b.running(t, a)
			v := b.settle(t, a, answer("first"))
			require.True(t, v.Landed)
			require.Equal(t, attempt.StateSUCCEEDED, v.Attempt.State)
			require.Equal(t, job.StateSUCCEEDED, v.Job.State)
			require.Equal(t, 2, v.Job.Version)
			require.Equal(t, a.ID, *v.Job.CompletedByID)
			require.JSONEq(t, `{"answer":"first"}`, string(v.Job.Result))
			require.Equal(t, 7, *v.Attempt.InputTokens)
			require.Nil(t, v.Attempt.LeaseToken)
			require.NotNil(t, v.Attempt.FinishedAt)
			events := b.eventTypes(t, j.ID)
			for range 2 { // the same worker, again
				v = b.settle(t, a, answer("second"))
				require.False(t, v.Landed)
				require.JSONEq(t, `{"answer":"first"}`, string(v.Job.Result))
			}
			require.Equal(t, 2, b.metrics.count())
			require.Equal(t, events, b.eventTypes(t, j.ID))
		})
	})

	t.Run("HasOneWinnerOfTwoRacingAttemptsInEitherOrder", func(t *testing.T) {
		t.Parallel()
		for _, secondWins := range []bool{false, true} {
			t.Run(fmt.Sprintf("second=%v", secondWins), func(t *testing.T) {
				t.Parallel()
				eachDatabase(t, func(t *testing.T, b *testBundle) {
					j, winner, loser := b.race(t)
					if secondWins {
						winner, loser = loser, winner
					}
					require.Equal(t, winner.JobVersion, loser.JobVersion)
					require.True(t, b.settle(t, winner, answer("winner")).Landed)
					require.Equal(t, attempt.StateSUPERSEDED, b.attempt(t, loser.ID).State)
					late := answer("canary-7f3a")
					late.ProviderRequestID = "canary-7f3a"
					v := b.settle(t, loser, late)
					require.False(t, v.Landed)
					require.Equal(t, attempt.StateSUPERSEDED, v.Attempt.State)
					require.Equal(t, 7, *v.Attempt.InputTokens, "the loser's usage is kept")
					require.Equal(t, 11, *v.Attempt.OutputTokens)
					require.Equal(t, winner.ID, *v.Job.CompletedByID)
					require.Equal(t, 2, b.job(t, j.ID).Version)
					require.Empty(t, b.find(t, "canary-7f3a"))
					require.Equal(t, 1, b.metrics.count())
					b.eventTypes(t, j.ID)
				})
			})
		}
	})

	t.Run("HasOneWinnerOfManySimultaneousClaims", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, first, second := b.race(t)
			both := []string{first.ID, second.ID}
			got := inParallel(20, func(i int) (Verdict, error) { return b.Settle(t.Context(), both[i%2], answer(both[i%2])) })
			landed := ""
			for i, r := range got {
				require.NoError(t, r.err)
				if r.value.Landed {
					require.Empty(t, landed)
					landed = both[i%2]
				}
			}
			done := b.job(t, j.ID)
			require.Equal(t, landed, *done.CompletedByID)
			require.Contains(t, string(done.Result), landed)
			require.Equal(t, 2, done.Version)
			b.eventTypes(t, j.ID)
		})
	})

	t.Run("IsWonByALateAnswerAfterUnknown", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			require.Equal(t, job.StateUNKNOWN, j.State)
			require.Equal(t, 1, j.Version)
			v := b.settle(t, a, answer("late"))
			require.True(t, v.Landed)
			require.Nil(t, v.Attempt.ErrorCode, "a success has no error")
			require.Equal(t, job.StateSUCCEEDED, v.Job.State)
		})
	})

	t.Run("DropsWhatComesAfterACancellation", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for _, late := range []Outcome{
				answer("canary-51c9"),
				{Output: json.RawMessage(`{"canary-51c9":1}`)},
				{Output: json.RawMessage(`canary-51c9`)},
				{Failure: &Failure{Code: "canary-51c9", Message: "canary-51c9"}},
				{Unknown: true, Failure: &Failure{Code: "canary-51c9", Message: "canary-51c9"}},
			} {
				late.ProviderRequestID, late.Usage = "canary-51c9", Usage{OutputTokens: new(3)}
				_, a := b.unknown(t, "plain")
				_, err := b.CancelAttempt(b.ann, a.ID, nil)
				require.NoError(t, err)
				v := b.settle(t, a, late)
				require.False(t, v.Landed)
				require.Equal(t, attempt.StateCANCELLED, v.Attempt.State)
				require.Equal(t, job.StateWAITING, v.Job.State)
				require.Equal(t, 3, *v.Attempt.OutputTokens)

				j := b.create(t, "plain")
				a = b.last(t, j.ID)
				b.running(t, a)
				done, err := b.CancelJob(b.ann, j.ID, nil)
				require.NoError(t, err)
				require.Equal(t, 2, done.Version, "a cancellation moves the result slot")
				v = b.settle(t, a, late)
				require.False(t, v.Landed)
				require.Equal(t, job.StateCANCELLED, v.Job.State)
				require.Nil(t, v.Job.Result)
			}
			require.Empty(t, b.find(t, "canary-51c9"))
		})
	})

	t.Run("KeepsTheGreaterCountsOfALoser", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, winner, loser := b.race(t)
			b.settle(t, loser, Outcome{
				Unknown: true, Failure: &Failure{Code: "TIMEOUT"}, Usage: Usage{InputTokens: new(50), OutputTokens: new(1)},
			})
			b.settle(t, winner, answer("a"))
			v := b.settle(t, loser, Outcome{Failure: &Failure{Code: "X"}, Usage: Usage{OutputTokens: new(90)}})
			require.Equal(t, 50, *v.Attempt.InputTokens)
			require.Equal(t, 90, *v.Attempt.OutputTokens)
			v = b.settle(t, loser, Outcome{Failure: &Failure{Code: "X"}, Usage: Usage{InputTokens: new(5), OutputTokens: new(9)}})
			require.Equal(t, 50, *v.Attempt.InputTokens)
			require.Equal(t, 90, *v.Attempt.OutputTokens)
		})
	})

	// Only a broken program could leave such an attempt open; the version is the guard that holds even then.
	t.Run("IsVoidForAttemptsOfAFormerLife", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for name, claim := range map[string]func(attemptID string) error{
				"worker": func(id string) error {
					v, err := b.Settle(t.Context(), id, answer("canary-99d2"))
					require.False(t, v.Landed)
					return err
				},
				"operator": func(id string) error {
					_, err := b.ResolveAttempt(b.op, Resolution{AttemptID: id, Outcome: "SUCCEEDED", Note: "n", Result: json.RawMessage(`{"answer":"canary-99d2"}`)})
					var finished *AttemptFinishedError
					require.ErrorAs(t, err, &finished)
					require.Equal(t, attempt.StateSUPERSEDED, finished.Attempt.State)
					return nil
				},
			} {
				j := b.failedJob(t)
				former := b.last(t, j.ID)
				_, err := b.StartAttempt(b.ann, j.ID, nil)
				require.NoError(t, err)
				require.NoError(t, b.exec(t, "UPDATE attempts SET state = 'UNKNOWN', finished_at = NULL WHERE id = '"+former.ID+"'"))
				require.NoError(t, claim(former.ID))
				require.Equal(t, attempt.StateSUPERSEDED, b.attempt(t, former.ID).State, name)
				now := b.job(t, j.ID)
				require.Equal(t, job.StateQUEUED, now.State, name)
				require.Nil(t, now.CompletedByID, name)
				b.running(t, b.last(t, j.ID))
				require.True(t, b.settle(t, b.last(t, j.ID), answer("new life")).Landed, name)
				b.eventTypes(t, j.ID)
			}
			require.Empty(t, b.find(t, "canary-99d2"))
		})
	})

	t.Run("KeepsNumbersAndTextsAsTheyCame", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for _, raw := range []string{`9007199254740993`, `1.10`, `1e400`, `-0`, `"\u0000"`, `null`, `12345678901234567890123`, `"9007199254740993"`, `true`} {
				j := b.create(t, "any")
				a := b.last(t, j.ID)
				b.running(t, a)
				v := b.settle(t, a, Outcome{Output: json.RawMessage(raw)})
				require.True(t, v.Landed, raw)
				require.Equal(t, raw, string(b.job(t, j.ID).Result))
			}
		})
	})
}

func TestConstraints(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		j := b.create(t, "plain")
		a := b.last(t, j.ID)
		other := b.create(t, "plain")
		for _, statement := range []string{
			"UPDATE jobs SET state = 'SUCCEEDED'",
			"UPDATE jobs SET state = 'DONE'",
			"UPDATE jobs SET result = '{}'",
			"UPDATE jobs SET completed_by_id = '" + a.ID + "'",
			"UPDATE jobs SET state = 'SUCCEEDED', completed_by_id = '" + a.ID + "'",
			"UPDATE jobs SET completed_by_id = '" + a.ID + "', result = '{}' WHERE id = '" + j.ID + "'",
			"UPDATE jobs SET state = 'SUCCEEDED', completed_by_id = 'att_nobody', result = '{}' WHERE id = '" + j.ID + "'",
			"UPDATE jobs SET state = 'SUCCEEDED', completed_by_id = '" + a.ID + "', result = '{}'", // one attempt, two jobs
			"UPDATE jobs SET idempotency_key = 'same'",
			"UPDATE jobs SET owner_id = 'own_nobody'",
			"UPDATE jobs SET task_version = 'sha256:none'",
			"UPDATE attempts SET state = 'DONE'",
			"UPDATE attempts SET state = 'FAILED'",
			"UPDATE attempts SET finished_at = created_at",
			"UPDATE attempts SET reason = 'WHIM'",
			"UPDATE attempts SET job_id = '" + other.ID + "'",
			"UPDATE attempts SET job_id = 'job_nobody' WHERE id = '" + a.ID + "'",
			"UPDATE job_events SET number = 1",
			"DELETE FROM jobs",
		} {
			require.Error(t, b.exec(t, statement), statement)
		}
		require.NoError(t, b.exec(t, "UPDATE jobs SET state = 'SUCCEEDED', completed_by_id = '"+a.ID+"', result = '{}' WHERE id = '"+j.ID+"'"))
		require.Error(t, b.exec(t, "DELETE FROM attempts WHERE id = '"+a.ID+"'"), "a winner is not deleted")
	})
}

// find returns the tables that hold a text anywhere.
func (b *testBundle) find(t *testing.T, text string) []string {
	t.Helper()
	tables := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if b.store.Postgres() {
		tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	}
	var found []string
	rows := b.texts(t, tables)
	require.Greater(t, len(rows), 6)
	for _, table := range rows {
		for _, row := range b.texts(t, `SELECT * FROM "`+table+`"`) {
			if strings.Contains(row, text) {
				found = append(found, table)
			}
		}
	}
	return found
}

// texts returns each row as one text.
func (b *testBundle) texts(t *testing.T, query string) []string {
	t.Helper()
	rows, err := b.store.DB().QueryContext(t.Context(), query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	var out []string
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		require.NoError(t, rows.Scan(values...))
		var line []string
		for _, v := range values {
			p, ok := v.(*any)
			require.True(t, ok)
			if raw, ok := (*p).([]byte); ok {
				line = append(line, string(raw))
				continue
			}
			line = append(line, fmt.Sprint(*p))
		}
		out = append(out, strings.Join(line, "|"))
	}
	require.NoError(t, rows.Err())
	return out
}
