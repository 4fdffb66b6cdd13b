package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

// TestAfterARace: a race takes nothing from the route that the job would have had without it.
func TestAfterARace(t *testing.T) {
	t.Parallel()
	open := Failure{Code: "CIRCUIT_OPEN", Retryable: true, RetryAfter: 2 * time.Minute} // above the cap
	closed := Failure{Code: CodeContractNotPassed}

	t.Run("ComesOnceToWhatTurnedAHedgeAway", func(t *testing.T) {
		t.Parallel()
		for name, f := range map[string]Failure{"CircuitOpen": open, "GateClosed": closed} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				eachDatabase(t, func(t *testing.T, b *testBundle) {
					j, a, hedge := b.hedged(t)
					b.refuse(t, hedge, f)
					b.refuse(t, b.last(t, j.ID), f)
					require.Len(t, b.attempts(t, j.ID), 3, "no target is hedged at twice")
					b.fails(t, a, false)
					b.nextIs(t, j.ID, "demo/b", attempt.ReasonFALLBACK)
					b.refuse(t, b.last(t, j.ID), f)
					b.nextIs(t, j.ID, "demo/c", attempt.ReasonFALLBACK)
					b.refuse(t, b.last(t, j.ID), f)
					require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
					b.replay(t, j.ID)
				})
			})
		}
	})

	t.Run("RetriesItThereAsItsErrorSays", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			trial := Failure{Code: "CIRCUIT_OPEN", Retryable: true, RetryAfter: time.Millisecond}
			j, a, hedge := b.hedged(t)
			b.refuse(t, hedge, trial)
			b.refuse(t, b.last(t, j.ID), trial)
			b.fails(t, a, false)
			for _, target := range []string{"demo/b", "demo/c"} {
				for _, reason := range []attempt.Reason{attempt.ReasonFALLBACK, attempt.ReasonRETRY, attempt.ReasonRETRY} {
					b.nextIs(t, j.ID, target, reason)
					b.refuse(t, b.last(t, j.ID), trial)
				}
			}
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
		})
	})

	t.Run("OwesARetryWhereAnAttemptByHandWasTurnedAway", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "race")
			a := b.last(t, j.ID)
			b.running(t, a)
			s, err := b.StartAttempt(b.ann, j.ID, new("demo/a"))
			require.NoError(t, err)
			b.refuse(t, s.Attempt, open)
			b.fails(t, a, true)
			b.nextIs(t, j.ID, "demo/a", attempt.ReasonRETRY)
		})
	})

	t.Run("ComesToWhatTurnedAnAttemptByHandAway", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "race")
			a := b.last(t, j.ID)
			b.running(t, a)
			s, err := b.StartAttempt(b.ann, j.ID, nil)
			require.NoError(t, err)
			b.refuse(t, s.Attempt, open)
			s, err = b.StartAttempt(b.ann, j.ID, nil)
			require.NoError(t, err)
			require.Equal(t, "demo/c", s.Attempt.Target, "the button goes on")
			b.running(t, s.Attempt)
			b.fails(t, s.Attempt, false)
			b.fails(t, a, false)
			b.nextIs(t, j.ID, "demo/b", attempt.ReasonFALLBACK)
		})
	})

	// It would not fit at the second try either.
	t.Run("DoesNotComeToWhatCannotBeSentThere", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a, hedge := b.hedged(t)
			b.refuse(t, hedge, Failure{Code: "PROMPT_TOO_LONG"})
			b.refuse(t, b.last(t, j.ID), Failure{Code: "PROMPT_TOO_LONG"})
			b.fails(t, a, false)
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
		})
	})

	t.Run("DoesNotComeToAHedgeThatWasCancelledByHand", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a, hedge := b.hedged(t)
			_, err := b.CancelAttempt(b.ann, hedge.ID, nil)
			require.NoError(t, err)
			b.fails(t, a, false)
			b.nextIs(t, j.ID, "demo/c", attempt.ReasonFALLBACK)
		})
	})

	t.Run("RetriesWhereTheHedgeFailed", func(t *testing.T) {
		t.Parallel()
		for name, tc := range map[string]struct {
			after, ago time.Duration
			next       string
			due        time.Duration
		}{
			"FromWhenItWasTold": {40 * time.Second, 30 * time.Second, "demo/b", 10 * time.Second},
			"AtOnceIfItIsOver":  {40 * time.Second, time.Hour, "demo/b", 0},
			"NotAboveTheCap":    {time.Minute + 1, time.Hour, "demo/c", 0},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				eachDatabase(t, func(t *testing.T, b *testBundle) {
					j, a, hedge := b.hedged(t)
					b.running(t, hedge)
					b.settle(t, hedge, Outcome{Failure: &Failure{Code: "RATE", Retryable: true, RetryAfter: tc.after}})
					require.Len(t, b.attempts(t, j.ID), 2, "nothing is started beside the open one")
					told := time.Now().Add(-tc.ago).Truncate(time.Microsecond)
					b.store.Client().Attempt.UpdateOneID(hedge.ID).SetFinishedAt(told).ExecX(b.sys)
					before := time.Now().Truncate(time.Microsecond)
					b.fails(t, a, false)
					next := b.last(t, j.ID)
					require.Equal(t, tc.next, next.Target)
					if tc.due > 0 {
						require.WithinDuration(t, told.Add(tc.after), next.DueAt, 0)
					} else {
						require.WithinRange(t, next.DueAt, before, time.Now())
					}
					require.WithinDuration(t, next.DueAt, b.queue.entries[*next.QueueEntry].due, 0)
					require.Equal(t, job.StateQUEUED, b.job(t, j.ID).State)
					b.replay(t, j.ID)
				})
			})
		}
	})

	t.Run("AsksTheGateBeforeItRetriesTheHedgesTarget", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a, hedge := b.hedged(t)
			b.running(t, hedge)
			b.fails(t, hedge, true)
			b.gate.close("demo/b")
			b.fails(t, a, false)
			b.nextIs(t, j.ID, "demo/c", attempt.ReasonFALLBACK)
			require.Contains(t, string(b.event(t, j.ID, EventFallbackSkipped).Detail), `"demo/b"`)
		})
	})

	t.Run("RetriesThePrimaryThatFailedFirst", func(t *testing.T) {
		t.Parallel()
		for name, end := range map[string]func(*testing.T, *testBundle, *ent.Attempt){
			"TheHedgeFails": func(t *testing.T, b *testBundle, hedge *ent.Attempt) { b.fails(t, hedge, false) },
			"AnOperatorSaysSo": func(t *testing.T, b *testBundle, hedge *ent.Attempt) {
				b.loses(t, hedge)
				_, err := b.ResolveAttempt(b.op, Resolution{hedge.ID, attempt.StateFAILED, nil, "gone"})
				require.NoError(t, err)
			},
			"PresumedDead": func(t *testing.T, b *testBundle, hedge *ent.Attempt) {
				b.loses(t, hedge)
				require.NoError(t, b.exec(t, "UPDATE attempts SET sent_at = "+b.store.Now(-time.Hour)+" WHERE id = '"+hedge.ID+"'"))
				n, err := b.SweepPresumedDead(t.Context(), "demo", time.Minute)
				require.NoError(t, err)
				require.Equal(t, 1, n)
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				eachDatabase(t, func(t *testing.T, b *testBundle) {
					j, a, hedge := b.hedged(t)
					b.running(t, hedge)
					b.fails(t, a, true)
					require.Len(t, b.attempts(t, j.ID), 2)
					end(t, b, hedge)
					b.nextIs(t, j.ID, "demo/a", attempt.ReasonRETRY)
					require.True(t, b.settle(t, b.last(t, j.ID), answer("retry")).Landed)
					b.replay(t, j.ID)
				})
			})
		}
	})

	t.Run("RetriesWhatFailedLastFirst", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a, hedge := b.hedged(t)
			b.running(t, hedge)
			b.fails(t, a, true)
			b.fails(t, hedge, true)
			for _, target := range []string{"demo/b", "demo/b", "demo/a", "demo/a"} { // each with its own two
				b.nextIs(t, j.ID, target, attempt.ReasonRETRY)
				b.fails(t, b.last(t, j.ID), true)
			}
			b.nextIs(t, j.ID, "demo/c", attempt.ReasonFALLBACK)
			b.fails(t, b.last(t, j.ID), false)
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
		})
	})

	t.Run("OwesNothingOnceItsRetryFailedForGood", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a, hedge := b.hedged(t)
			b.running(t, hedge)
			b.fails(t, hedge, true)
			b.fails(t, a, false)
			b.nextIs(t, j.ID, "demo/b", attempt.ReasonRETRY)
			b.fails(t, b.last(t, j.ID), false)
			b.nextIs(t, j.ID, "demo/c", attempt.ReasonFALLBACK)
		})
	})

	// As it takes the place of a retry that waits.
	t.Run("AnAttemptByHandTakesThePlaceOfWhatIsOwed", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a, hedge := b.hedged(t)
			b.running(t, hedge)
			b.fails(t, hedge, true)
			s, err := b.StartAttempt(b.ann, j.ID, new("demo/c"))
			require.NoError(t, err)
			b.running(t, s.Attempt)
			b.fails(t, s.Attempt, true)
			b.fails(t, a, false)
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
		})
	})

	t.Run("OwesNothingFromBeforeTheJobWasReopened", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a, hedge := b.hedged(t)
			b.running(t, hedge)
			b.fails(t, hedge, true)
			b.gate.close("demo/b", "demo/c")
			b.fails(t, a, false)
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
			s, err := b.StartAttempt(b.ann, j.ID, new("demo/a"))
			require.NoError(t, err)
			// By the clock of a process that is ahead.
			b.store.Client().Attempt.UpdateOneID(hedge.ID).SetFinishedAt(time.Now().Add(time.Hour)).ExecX(b.sys)
			b.gate.toggle("demo/b")
			b.fails(t, s.Attempt, false)
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
		})
	})
}

// hedged makes a job whose first attempt is RUNNING and hedged at demo/b.
func (b *testBundle) hedged(t *testing.T) (j *ent.Job, first, hedge *ent.Attempt) {
	t.Helper()
	j = b.create(t, "race")
	first = b.last(t, j.ID)
	b.running(t, first)
	require.NoError(t, b.Hedge(t.Context(), first.ID))
	hedge = b.last(t, j.ID)
	require.Equal(t, "demo/b", hedge.Target)
	require.Equal(t, attempt.ReasonHEDGE, hedge.Reason)
	return j, first, hedge
}

// refuse settles an attempt that was not sent.
func (b *testBundle) refuse(t *testing.T, a *ent.Attempt, f Failure) {
	t.Helper()
	require.NoError(t, b.Refuse(t.Context(), b.take(t, a), f))
}

// nextIs looks at the job's newest attempt, the only open one.
func (b *testBundle) nextIs(t *testing.T, jobID, target string, reason attempt.Reason) {
	t.Helper()
	a := b.last(t, jobID)
	require.Equal(t, attempt.StateSTARTING, a.State)
	require.Equal(t, target, a.Target)
	require.Equal(t, reason, a.Reason)
	require.Equal(t, job.StateQUEUED, b.job(t, jobID).State)
}
