package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/tasks"
)

func TestNextAttempt(t *testing.T) {
	t.Parallel()

	t.Run("RetriesThenFallsBackThenFails", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			type step struct {
				target string
				reason attempt.Reason
			}
			var got []step
			for range 20 {
				a := b.last(t, j.ID)
				if !open(a) {
					break
				}
				got = append(got, step{a.Target, a.Reason})
				require.Equal(t, job.StateQUEUED, b.job(t, j.ID).State)
				b.running(t, a)
				v := b.fails(t, a, true)
				require.True(t, v.Landed)
			}
			require.Equal(t, []step{
				{"demo/a", "PRIMARY"}, {"demo/a", "RETRY"}, {"demo/a", "RETRY"},
				{"demo/b", "FALLBACK"}, {"demo/b", "RETRY"}, {"demo/b", "RETRY"},
				{"demo/c", "FALLBACK"}, {"demo/c", "RETRY"}, {"demo/c", "RETRY"},
			}, got)
			j = b.job(t, j.ID)
			require.Equal(t, job.StateFAILED, j.State)
			require.Equal(t, 2, j.Version)
			b.eventTypes(t, j.ID)
			for _, a := range b.attempts(t, j.ID) {
				require.Equal(t, 1, a.JobVersion)
				require.Equal(t, []int64{*a.QueueEntry}, b.queue.of(a.ID))
			}
		})
	})

	t.Run("DoesNotRefillTheBudgetOfATarget", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			for range 3 {
				b.fails(t, b.last(t, j.ID), true)
			}
			require.Equal(t, "demo/b", b.last(t, j.ID).Target)
			for b.job(t, j.ID).State != job.StateFAILED {
				b.fails(t, b.last(t, j.ID), false)
			}
			// Again by hand at the first target: its two retries are used up.
			s, err := b.StartAttempt(b.ann, j.ID, new("demo/a"))
			require.NoError(t, err)
			b.fails(t, s.Attempt, true)
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
		})
	})

	t.Run("DoesNotRetryWhatIsNotRetryable", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.fails(t, b.last(t, j.ID), false)
			require.Equal(t, "demo/b", b.last(t, j.ID).Target)
		})
	})

	t.Run("DoesNotRetryAManualAttemptByItself", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, a := b.unknown(t, "plain")
			_, err := b.CancelAttempt(b.ann, a.ID, nil)
			require.NoError(t, err)
			s, err := b.StartAttempt(b.ann, a.JobID, new("demo/a"))
			require.NoError(t, err)
			b.fails(t, s.Attempt, true)
			next := b.last(t, a.JobID)
			require.Equal(t, "demo/b", next.Target, "untried fallbacks follow")
			require.Equal(t, attempt.ReasonFALLBACK, next.Reason)
		})
	})

	t.Run("WaitsForItsBackOffAndForRetryAfter", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for _, tc := range []struct {
				after, least, most time.Duration
			}{{0, time.Second, 2 * time.Second}, {40 * time.Second, 40 * time.Second, 41 * time.Second}, {time.Minute, time.Minute, 61 * time.Second}} {
				j := b.create(t, "plain")
				a := b.last(t, j.ID)
				before := time.Now()
				b.settle(t, a, Outcome{Failure: &Failure{Code: "RATE", Retryable: true, RetryAfter: tc.after}})
				retry := b.last(t, j.ID)
				require.Equal(t, attempt.ReasonRETRY, retry.Reason)
				require.WithinRange(t, retry.DueAt, before.Add(tc.least-time.Millisecond), time.Now().Add(tc.most))
				require.WithinDuration(t, retry.DueAt, b.queue.entries[*retry.QueueEntry].due, 0, "the entry is scheduled after the back-off")
				require.Equal(t, job.StateQUEUED, b.job(t, j.ID).State)
			}
		})
	})

	t.Run("DoesNotWaitForMoreThanTheCap", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.settle(t, b.last(t, j.ID), Outcome{Failure: &Failure{Code: "RATE", Retryable: true, RetryAfter: time.Minute + 1}})
			require.Equal(t, "demo/b", b.last(t, j.ID).Target)
		})
	})

	t.Run("SkipsClosedFallbacksAndSaysWhy", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.gate.close("demo/b")
			j := b.create(t, "plain")
			b.fails(t, b.last(t, j.ID), false)
			require.Equal(t, "demo/c", b.last(t, j.ID).Target)
			e := b.event(t, j.ID, EventFallbackSkipped)
			require.JSONEq(t, `{"target":"demo/b","reasons":["The check schema failed."]}`, string(e.Detail))
			require.Equal(t, j.TaskVersion+" demo/b", b.gate.asked[0], "the gate is asked for the job's own version")
			// demo/b is still untried: once its contract passes, it is the next one.
			b.gate.mu.Lock()
			b.gate.closed = nil
			b.gate.mu.Unlock()
			b.fails(t, b.last(t, j.ID), false)
			require.Equal(t, "demo/b", b.last(t, j.ID).Target)
		})
	})

	t.Run("FailsWhenAllFallbacksAreClosed", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.gate.close("demo/b")
			b.targets.remove("demo/c")
			j := b.create(t, "plain")
			require.Len(t, b.queue.of(b.last(t, j.ID).ID), 1)
			b.fails(t, b.last(t, j.ID), false)
			require.Equal(t, job.StateFAILED, b.job(t, j.ID).State)
			require.Equal(t, []string{
				EventJobCreated, EventAttemptCreated, EventAttemptState, EventFallbackSkipped, EventFallbackSkipped, EventJobState,
			}, b.eventTypes(t, j.ID))
		})
	})

	// A retry at a fallback is an attempt at a fallback.
	t.Run("AsksTheGateAgainForARetryAtAFallback", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.fails(t, b.last(t, j.ID), false)
			a := b.last(t, j.ID)
			require.Equal(t, "demo/b", a.Target)
			b.running(t, a)
			b.gate.close("demo/b")
			b.fails(t, a, true)
			require.Equal(t, "demo/c", b.last(t, j.ID).Target)
			require.Contains(t, string(b.event(t, j.ID, EventFallbackSkipped).Detail), `"demo/b"`)
		})
	})

	t.Run("ChangesNothingWhenTheGateCannotSay", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			b.running(t, a)
			b.gate.err = errBroken
			_, err := b.Settle(t.Context(), a.ID, Outcome{Failure: &Failure{Code: "X"}})
			require.ErrorIs(t, err, errBroken)
			require.Equal(t, attempt.StateRUNNING, b.attempt(t, a.ID).State)
		})
	})

	t.Run("WaitsForTheOtherAttemptOfARace", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, first, second := b.race(t)
			b.fails(t, first, true)
			require.Len(t, b.attempts(t, j.ID), 2)
			require.Equal(t, job.StateRUNNING, b.job(t, j.ID).State)
			b.loses(t, second)
			require.Equal(t, job.StateUNKNOWN, b.job(t, j.ID).State)
			b.fails(t, second, true)
			retry := b.last(t, j.ID)
			require.Equal(t, attempt.ReasonRETRY, retry.Reason)
			require.Equal(t, "demo/a", retry.Target, "the one by hand is not retried, but the first is owed a retry")
			b.fails(t, retry, false)
			require.Equal(t, "demo/c", b.last(t, j.ID).Target)
		})
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	p := tasks.RetryPolicy{Base: time.Second, Cap: 5 * time.Second}
	for _, tc := range []struct {
		used   int
		jitter float64
		want   time.Duration
	}{
		{0, 0, time.Second}, {1, 0, 2 * time.Second}, {2, 0, 4 * time.Second}, {3, 0, 5 * time.Second}, {1000, 0, 5 * time.Second},
		{0, 0.5, 750 * time.Millisecond}, {1000, 0.999999, 2500 * time.Millisecond},
	} {
		require.InDelta(t, tc.want, backoff(p, tc.used, tc.jitter), float64(time.Millisecond))
	}
	require.Equal(t, time.Second, backoff(tasks.RetryPolicy{Base: time.Hour, Cap: time.Second}, 0, 0))
}

// event returns the only event of a type.
func (b *testBundle) event(t *testing.T, jobID, kind string) *ent.JobEvent {
	t.Helper()
	var found []*ent.JobEvent
	for _, e := range b.job(t, jobID).QueryEvents().AllX(b.sys) {
		if e.Type == kind {
			found = append(found, e)
		}
	}
	require.Len(t, found, 1)
	return found[0]
}
