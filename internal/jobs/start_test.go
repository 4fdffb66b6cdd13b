package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

func TestStartAttempt(t *testing.T) {
	t.Parallel()

	t.Run("IsBlockedByWhatMayStillBeAtWork", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			blocked := func(state attempt.State) {
				t.Helper()
				_, err := b.StartAttempt(b.ann, j.ID, nil)
				var by *AttemptBlockedError
				require.ErrorAs(t, err, &by)
				require.Equal(t, a.ID, by.By.ID)
				require.Equal(t, state, by.By.State)
			}
			blocked(attempt.StateSTARTING)
			b.running(t, a)
			blocked(attempt.StateRUNNING)
			b.loses(t, a)
			blocked(attempt.StateUNKNOWN)
			require.Len(t, b.attempts(t, j.ID), 1)
		})
	})

	t.Run("RacesOnlyARunningAttemptOfATaskThatAllowsIt", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "race")
			a := b.last(t, j.ID)
			var by *AttemptBlockedError
			_, err := b.StartAttempt(b.ann, j.ID, nil)
			require.ErrorAs(t, err, &by)
			b.running(t, a)
			s, err := b.StartAttempt(b.ann, j.ID, nil)
			require.NoError(t, err)
			require.Equal(t, "demo/b", s.Attempt.Target)
			require.Equal(t, attempt.ReasonMANUAL, s.Attempt.Reason)
			require.Equal(t, job.StateRUNNING, s.Job.State)
			require.Equal(t, 1, s.Attempt.JobVersion, "starting an attempt leaves the version alone")
			require.Equal(t, 1, s.Job.Version)
			// The second one is STARTING: no third.
			_, err = b.StartAttempt(b.ann, j.ID, nil)
			require.ErrorAs(t, err, &by)
			require.Equal(t, s.Attempt.ID, by.By.ID)
			// The racing attempt runs on when the first turns UNKNOWN, but nothing new may start.
			b.running(t, s.Attempt)
			b.loses(t, a)
			require.Equal(t, job.StateRUNNING, b.job(t, j.ID).State)
			_, err = b.StartAttempt(b.ann, j.ID, nil)
			require.ErrorAs(t, err, &by)
			require.Equal(t, a.ID, by.By.ID)
			b.loses(t, s.Attempt) // both may be UNKNOWN at once
			require.Equal(t, job.StateUNKNOWN, b.job(t, j.ID).State)
		})
	})

	t.Run("LetsOneOfManySimultaneousCallsThrough", func(t *testing.T) {
		t.Parallel()
		for _, task := range []string{"single", "race"} {
			t.Run(task, func(t *testing.T) {
				t.Parallel()
				eachDatabase(t, func(t *testing.T, b *testBundle) {
					j := b.create(t, task)
					a := b.last(t, j.ID)
					b.running(t, a)
					if task == "single" {
						b.fails(t, a, false)
						require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
					}
					other := b.restarted(allTasks(t))
					got := inParallel(20, func(i int) (AttemptAndJob, error) {
						s := b.Service
						if i%2 == 0 {
							s = other.Service
						}
						return s.StartAttempt(b.ann, j.ID, nil)
					})
					started := 0
					for _, r := range got {
						if r.err == nil {
							started++
							continue
						}
						require.ErrorAs(t, r.err, new(*AttemptBlockedError))
					}
					require.Equal(t, 1, started)
					require.Len(t, b.attempts(t, j.ID), 2)
					require.Equal(t, 2, b.queue.len())
					b.eventTypes(t, j.ID)
				})
			})
		}
	})

	t.Run("HasAPartialUniqueIndexAsItsSecondLine", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			insert := func(number int) error {
				return b.store.Client().Attempt.Create().SetJobID(j.ID).SetNumber(number).SetTarget("demo/b").SetReason("MANUAL").
					SetState(attempt.StateSTARTING).SetJobVersion(1).Exec(b.sys)
			}
			err := insert(2)
			require.Error(t, err)
			require.True(t, ent.IsConstraintError(err), err)
			b.running(t, b.last(t, j.ID))
			require.NoError(t, insert(2))
			require.True(t, ent.IsConstraintError(insert(2)), "one number, one attempt")
		})
	})

	t.Run("TakesThePlaceOfARetryThatWaits", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.fails(t, b.last(t, j.ID), true)
			retry := b.last(t, j.ID)
			b.aged(t, retry, "due_at", -time.Hour) // on a slow machine it would be due by now
			require.Equal(t, attempt.ReasonRETRY, retry.Reason)
			s, err := b.StartAttempt(b.ann, j.ID, nil)
			require.NoError(t, err)
			require.Equal(t, "demo/b", s.Attempt.Target)
			require.Equal(t, job.StateQUEUED, s.Job.State)
			retry = b.attempt(t, retry.ID)
			require.Equal(t, attempt.StateCANCELLED, retry.State)
			require.Equal(t, CodeReplaced, *retry.ErrorCode)
			_, err = b.Take(t.Context(), retry.ID, *retry.QueueEntry)
			require.ErrorIs(t, err, ErrNotYours)
		})
	})

	t.Run("IsBlockedByARetryThatAWorkerTook", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.fails(t, b.last(t, j.ID), true)
			retry := b.last(t, j.ID)
			b.take(t, retry)
			_, err := b.StartAttempt(b.ann, j.ID, nil)
			require.ErrorAs(t, err, new(*AttemptBlockedError))
			require.Equal(t, attempt.StateSTARTING, b.attempt(t, retry.ID).State)
		})
	})

	// The worker does not lock the job: it may take and send the retry after StartAttempt has read it.
	t.Run("IsBlockedByARetryThatAWorkerTakesMeanwhile", func(t *testing.T) {
		t.Parallel()
		b := setup(t, databases.DSN(t)) // SQLite's transactions hold the whole database
		j := b.create(t, "plain")
		b.fails(t, b.last(t, j.ID), true)
		retry := b.last(t, j.ID)
		b.aged(t, retry, "due_at", -time.Hour) // on a slow machine it would be due by now
		b.gate.hook = func() { b.sent(t, retry) }
		_, err := b.StartAttempt(b.ann, j.ID, new("demo/b"))
		var by *AttemptBlockedError
		require.ErrorAs(t, err, &by)
		require.Equal(t, retry.ID, by.By.ID)
		require.NotNil(t, by.By.SentAt)
		require.Equal(t, attempt.StateSTARTING, b.attempt(t, retry.ID).State)
		require.Len(t, b.attempts(t, j.ID), 2)
	})

	t.Run("ReopensAFailedJobUnderANewVersion", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.failedJob(t)
			require.Equal(t, 2, j.Version)
			s, err := b.StartAttempt(b.ann, j.ID, nil)
			require.NoError(t, err)
			require.Equal(t, "demo/a", s.Attempt.Target, "no candidate is left: the job's own target")
			require.Equal(t, 3, s.Job.Version)
			require.Equal(t, 3, s.Attempt.JobVersion)
			require.Equal(t, job.StateQUEUED, s.Job.State)
			require.Equal(t, 3, b.job(t, j.ID).Version)
			b.running(t, s.Attempt)
			require.True(t, b.settle(t, s.Attempt, answer("late")).Landed)
			require.Equal(t, 4, b.job(t, j.ID).Version)
		})
	})

	t.Run("GoesOnWithAWaitingJobUnderItsVersion", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			c, err := b.CancelAttempt(b.ann, a.ID, nil)
			require.NoError(t, err)
			require.Equal(t, job.StateWAITING, c.Job.State)
			s, err := b.StartAttempt(b.ann, j.ID, nil)
			require.NoError(t, err)
			require.Equal(t, 1, s.Job.Version)
			require.Equal(t, job.StateQUEUED, s.Job.State)
		})
	})

	t.Run("RefusesFinalJobs", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			var finished *JobFinishedError
			j := b.create(t, "plain")
			b.running(t, b.last(t, j.ID))
			b.settle(t, b.last(t, j.ID), answer("a"))
			_, err := b.StartAttempt(b.ann, j.ID, nil)
			require.ErrorAs(t, err, &finished)
			require.Equal(t, job.StateSUCCEEDED, finished.Job.State)
			j = b.create(t, "plain")
			_, err = b.CancelJob(b.ann, j.ID, nil)
			require.NoError(t, err)
			_, err = b.StartAttempt(b.ann, j.ID, nil)
			require.ErrorAs(t, err, &finished)
			// What an error lets out keeps working.
			as, err := finished.Job.QueryAttempts().All(b.ann)
			require.NoError(t, err)
			require.Len(t, as, 1)
		})
	})

	t.Run("IsBounded", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.maxAttempts = 4
			j := b.failedJob(t)
			for n := 2; n <= 4; n++ {
				s, err := b.StartAttempt(b.ann, j.ID, nil)
				require.NoError(t, err)
				_, err = b.StartAttempt(b.ann, j.ID, nil)
				require.ErrorAs(t, err, new(*AttemptBlockedError), "what blocks goes first")
				b.fails(t, s.Attempt, false)
			}
			before := b.eventTypes(t, j.ID)
			got := inParallel(8, func(int) (AttemptAndJob, error) { return b.StartAttempt(b.op, j.ID, new("demo/b")) })
			for _, r := range got {
				var bound *TooManyAttemptsError
				require.ErrorAs(t, r.err, &bound)
				require.Equal(t, TooManyAttemptsError{Target: "demo/b", Max: 4}, *bound)
			}
			require.Len(t, b.attempts(t, j.ID), 4)
			require.Equal(t, before, b.eventTypes(t, j.ID))
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
		})
	})

	t.Run("AsksTheGateForEveryTargetButTheJobsOwn", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.failedJob(t)
			b.gate.close("demo/a", "demo/d")
			for _, target := range []string{"demo/d", "demo/nope", ""} {
				_, err := b.StartAttempt(b.ann, j.ID, &target)
				var refused *FallbackNotAllowedError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, target, refused.Target)
				require.NotEmpty(t, refused.Reasons)
			}
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
			require.Equal(t, 2, b.job(t, j.ID).Version)
			s, err := b.StartAttempt(b.ann, j.ID, new("demo/a"))
			require.NoError(t, err)
			require.NoError(t, b.MarkSent(t.Context(), b.take(t, s.Attempt)))
		})
	})

	t.Run("FailsClosedWhenTheGateCannotSay", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.failedJob(t)
			b.gate.err = errBroken
			_, err := b.StartAttempt(b.ann, j.ID, new("demo/b"))
			require.ErrorIs(t, err, errBroken)
			require.Len(t, b.attempts(t, j.ID), 1)
		})
	})
}
