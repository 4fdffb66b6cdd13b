package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

func TestLease(t *testing.T) {
	t.Parallel()

	t.Run("IsGivenToOneOfManyWorkers", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			got := inParallel(20, func(int) (*Lease, error) { return b.Take(t.Context(), a.ID, *a.QueueEntry) })
			taken := 0
			for _, r := range got {
				if r.err == nil {
					taken++
					continue
				}
				require.ErrorIs(t, r.err, ErrNotYours)
			}
			require.Equal(t, 1, taken)
		})
	})

	t.Run("IsRefusedToAnotherQueueEntry", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			_, err := b.Take(t.Context(), a.ID, *a.QueueEntry+1)
			require.ErrorIs(t, err, ErrNotYours)
			_, err = b.Take(t.Context(), "att_nobody", *a.QueueEntry)
			require.ErrorIs(t, err, ErrNotYours)
		})
	})

	t.Run("CarriesTheJobAndItsTaskVersion", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			l := b.take(t, b.last(t, j.ID))
			require.Equal(t, j.ID, l.Job.ID)
			require.JSONEq(t, `{"text":"a"}`, string(l.Job.Input))
			require.Equal(t, j.TaskVersion, l.Task.Digest)
		})
	})

	t.Run("MarksTheRequestSentOnce", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			l := b.take(t, a)
			got := inParallel(10, func(int) (struct{}, error) { return struct{}{}, b.MarkSent(t.Context(), l) })
			marked := 0
			for _, r := range got {
				if r.err == nil {
					marked++
					continue
				}
				require.ErrorIs(t, r.err, ErrNotYours)
			}
			require.Equal(t, 1, marked)
			require.NotNil(t, b.attempt(t, a.ID).SentAt)
			// Never again, whatever becomes of the lease.
			b.expireLeases(t)
			_, err := b.Take(t.Context(), a.ID, *a.QueueEntry)
			require.ErrorIs(t, err, ErrNotYours)
		})
	})

	t.Run("IsVoidOnceAnotherWorkerTookOver", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			stale := b.take(t, a)
			require.NoError(t, b.Beat(t.Context(), stale))
			b.expireLeases(t)
			fresh := b.take(t, a)
			require.NotEqual(t, stale.Token, fresh.Token)
			require.ErrorIs(t, b.Beat(t.Context(), stale), ErrNotYours)
			require.ErrorIs(t, b.MarkSent(t.Context(), stale), ErrNotYours)
			require.NoError(t, b.Release(t.Context(), stale))
			require.Nil(t, b.attempt(t, a.ID).SentAt)
			require.NoError(t, b.MarkSent(t.Context(), fresh))
			require.ErrorIs(t, b.MarkSent(t.Context(), stale), ErrNotYours)
		})
	})

	t.Run("IsVoidOnceTheAttemptWasCancelled", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			l := b.take(t, a)
			_, err := b.CancelAttempt(b.ann, a.ID, nil)
			require.NoError(t, err)
			require.ErrorIs(t, b.MarkSent(t.Context(), l), ErrNotYours)
			require.ErrorIs(t, b.Beat(t.Context(), l), ErrNotYours)
			require.NoError(t, b.Acknowledge(t.Context(), l, "req", ""))
			require.Equal(t, attempt.StateCANCELLED, b.attempt(t, a.ID).State)
			open, err := b.Open(t.Context(), a.ID)
			require.NoError(t, err)
			require.False(t, open)
		})
	})

	// No move leaves a token behind; the state is the second line.
	t.Run("IsVoidInATerminalStateEvenWithItsToken", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			l := b.take(t, a)
			require.NoError(t, b.exec(t, "UPDATE attempts SET state = 'CANCELLED', finished_at = created_at"))
			require.ErrorIs(t, b.MarkSent(t.Context(), l), ErrNotYours)
			require.ErrorIs(t, b.Beat(t.Context(), l), ErrNotYours)
			require.NoError(t, b.Release(t.Context(), l))
			require.Equal(t, 1, b.queue.len())
		})
	})

	t.Run("EndsWithUnknown", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			l := b.running(t, a)
			require.NoError(t, b.Beat(t.Context(), l))
			b.loses(t, a)
			require.ErrorIs(t, b.Beat(t.Context(), l), ErrNotYours)
			require.NoError(t, b.Acknowledge(t.Context(), l, "req", ""))
			require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a.ID).State, "nothing goes back to RUNNING")
			open, err := b.Open(t.Context(), a.ID)
			require.NoError(t, err)
			require.True(t, open, "the worker lingers")
		})
	})

	t.Run("AcknowledgesOnce", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			l := b.sent(t, a)
			require.NoError(t, b.Acknowledge(t.Context(), l, "req-1", "handle-1"))
			require.NoError(t, b.Acknowledge(t.Context(), l, "req-2", ""))
			a = b.attempt(t, a.ID)
			require.Equal(t, attempt.StateRUNNING, a.State)
			require.Equal(t, "req-1", *a.ProviderRequestID)
			require.Equal(t, "handle-1", *a.ProviderHandle)
			require.NotNil(t, a.AcknowledgedAt)
			require.NotNil(t, a.LeaseToken, "RUNNING is still the worker's")
			require.Equal(t, job.StateRUNNING, b.job(t, j.ID).State)
		})
	})
}

func TestGateBeforeSending(t *testing.T) {
	t.Parallel()

	// fallback makes a job whose newest attempt is the fallback demo/b.
	fallback := func(t *testing.T, b *testBundle) (jobID string, l *Lease) {
		t.Helper()
		j := b.create(t, "plain")
		b.running(t, b.last(t, j.ID))
		b.fails(t, b.last(t, j.ID), false)
		a := b.last(t, j.ID)
		require.Equal(t, "demo/b", a.Target)
		return j.ID, b.take(t, a)
	}

	t.Run("FailsTheAttemptAndGoesOn", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			jobID, l := fallback(t, b)
			b.gate.close("demo/b")
			require.ErrorIs(t, b.MarkSent(t.Context(), l), ErrNotYours)
			a := b.attempt(t, l.Attempt.ID)
			require.Equal(t, attempt.StateFAILED, a.State)
			require.Equal(t, CodeContractNotPassed, *a.ErrorCode)
			require.Nil(t, a.SentAt)
			require.Equal(t, "demo/c", b.last(t, jobID).Target)
			require.Equal(t, job.StateQUEUED, b.job(t, jobID).State)
			require.Equal(t, 1, b.job(t, jobID).Version)
		})
	})

	t.Run("SendsNothingWhenTheGateCannotSay", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, l := fallback(t, b)
			b.gate.err = errBroken
			require.ErrorIs(t, b.MarkSent(t.Context(), l), errBroken)
			a := b.attempt(t, l.Attempt.ID)
			require.Nil(t, a.SentAt)
			require.Equal(t, attempt.StateSTARTING, a.State)
		})
	})

	t.Run("RefusesATargetThatThisProcessDoesNotKnow", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, l := fallback(t, b)
			b.targets.remove("demo/b")
			require.ErrorIs(t, b.MarkSent(t.Context(), l), ErrNotYours)
			require.Equal(t, CodeContractNotPassed, *b.attempt(t, l.Attempt.ID).ErrorCode)
		})
	})

	// Processes may have different configurations. One that came too late must not end what another one sent.
	t.Run("RefusesOnlyWhatIsTheWorkersOwn", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			jobID, stale := fallback(t, b)
			b.expireLeases(t)
			fresh := b.take(t, stale.Attempt)
			require.NoError(t, b.MarkSent(t.Context(), fresh))
			b.gate.close("demo/b")
			require.ErrorIs(t, b.MarkSent(t.Context(), stale), ErrNotYours)
			require.Equal(t, attempt.StateSTARTING, b.attempt(t, stale.Attempt.ID).State)
			require.Len(t, b.attempts(t, jobID), 2)
			require.Zero(t, b.metrics.count(), "it lost no result")
		})
	})

	t.Run("AsksNothingForTheJobsOwnTarget", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.gate.close("demo/a")
			b.sent(t, b.last(t, b.create(t, "plain").ID))
			require.Empty(t, b.gate.asked)
		})
	})
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	f := Failure{Code: "NOT_CONFIGURED", Message: "There is no such provider here."}

	t.Run("FailsWhatWasNotSentAndGoesOn", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			l := b.take(t, b.last(t, j.ID))
			require.NoError(t, b.Refuse(t.Context(), l, f))
			require.Equal(t, attempt.StateFAILED, b.attempt(t, l.Attempt.ID).State)
			require.Equal(t, "demo/b", b.last(t, j.ID).Target)
			require.ErrorIs(t, b.Refuse(t.Context(), l, f), ErrNotYours)
		})
	})

	t.Run("LeavesWhatWasSent", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			l := b.sent(t, a)
			require.ErrorIs(t, b.Refuse(t.Context(), l, f), ErrNotYours)
			require.Equal(t, attempt.StateSTARTING, b.attempt(t, a.ID).State)
		})
	})

	t.Run("LeavesWhatAnotherWorkerTook", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			stale := b.take(t, a)
			b.expireLeases(t)
			fresh := b.take(t, a)
			require.ErrorIs(t, b.Refuse(t.Context(), stale, f), ErrNotYours)
			require.NoError(t, b.MarkSent(t.Context(), fresh))
		})
	})
}
