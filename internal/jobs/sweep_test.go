package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

func TestSweepLeases(t *testing.T) {
	t.Parallel()

	sweep := func(t *testing.T, b *testBundle) Swept {
		t.Helper()
		s, err := b.SweepLeases(t.Context())
		require.NoError(t, err)
		return s
	}

	t.Run("RequeuesWhatWasNeverSent", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			dead := b.take(t, a)
			require.Equal(t, Swept{}, sweep(t, b), "the lease is not over")
			b.expireLeases(t)
			require.Equal(t, Swept{Requeued: 1}, sweep(t, b))
			require.Equal(t, Swept{}, sweep(t, b))
			now := b.attempt(t, a.ID)
			require.Equal(t, attempt.StateSTARTING, now.State)
			require.Len(t, b.queue.of(a.ID), 2)
			require.Equal(t, b.queue.of(a.ID)[1], *now.QueueEntry)
			require.ErrorIs(t, b.MarkSent(t.Context(), dead), ErrNotYours)
			_, err := b.Take(t.Context(), a.ID, *a.QueueEntry)
			require.ErrorIs(t, err, ErrNotYours, "the old entry is not its own any more")
			b.sent(t, a)
			require.Contains(t, b.eventTypes(t, j.ID), EventAttemptRequeued)
		})
	})

	t.Run("MakesWhatWasSentUnknown", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			started, running := b.create(t, "plain"), b.create(t, "plain")
			b.sent(t, b.last(t, started.ID))
			dead := b.running(t, b.last(t, running.ID))
			b.expireLeases(t)
			require.Equal(t, Swept{Unknown: 2}, sweep(t, b))
			for _, j := range []string{started.ID, running.ID} {
				a := b.last(t, j)
				require.Equal(t, attempt.StateUNKNOWN, a.State)
				require.Equal(t, CodeWorkerLost, *a.ErrorCode)
				require.Nil(t, a.LeaseToken)
				require.Equal(t, job.StateUNKNOWN, b.job(t, j).State)
				require.Equal(t, 1, b.queue.len()-1, "nothing is sent again")
			}
			require.ErrorIs(t, b.Beat(t.Context(), dead), ErrNotYours)
			// The worker was only slow: its answer still wins.
			require.True(t, b.settle(t, dead.Attempt, answer("slow")).Landed)
		})
	})

	t.Run("ChangesNothingAfterTheWorkerCameBack", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			sentJob, takenJob := b.create(t, "plain"), b.create(t, "plain")
			sent, taken := b.running(t, b.last(t, sentJob.ID)), b.take(t, b.last(t, takenJob.ID))
			b.expireLeases(t)
			seenSent, seenTaken := b.last(t, sentJob.ID), b.last(t, takenJob.ID)
			require.NoError(t, b.Beat(t.Context(), sent))
			require.NoError(t, b.MarkSent(t.Context(), taken))
			var swept Swept
			require.NoError(t, b.sweepOne(b.sys, seenSent, &swept))
			require.NoError(t, b.sweepOne(b.sys, seenTaken, &swept))
			require.Equal(t, Swept{}, swept)
			require.Equal(t, attempt.StateRUNNING, b.attempt(t, seenSent.ID).State)
			require.Equal(t, attempt.StateSTARTING, b.attempt(t, seenTaken.ID).State)
			require.Len(t, b.queue.of(seenTaken.ID), 1)
		})
	})

	// A new worker has a lease of its own that has ended as well: it is not the one that the sweeper read.
	t.Run("ChangesNothingOfAnotherLease", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.take(t, b.last(t, j.ID))
			b.expireLeases(t)
			seen := b.last(t, j.ID)
			b.take(t, seen)
			var swept Swept
			require.NoError(t, b.sweepOne(b.sys, seen, &swept))
			require.Equal(t, Swept{}, swept)
			require.NotNil(t, b.last(t, j.ID).LeaseToken)
		})
	})

	t.Run("SettlesEachOrphanOnceAmongManySweepers", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			var ids []string
			for i := range 6 {
				j := b.create(t, "plain")
				ids = append(ids, j.ID)
				if i%2 == 0 {
					b.take(t, b.last(t, j.ID))
				} else {
					b.running(t, b.last(t, j.ID))
				}
			}
			b.expireLeases(t)
			got := inParallel(4, func(int) (Swept, error) { return b.SweepLeases(t.Context()) })
			var all Swept
			for _, r := range got {
				require.NoError(t, r.err)
				all.Requeued += r.value.Requeued
				all.Unknown += r.value.Unknown
			}
			require.Equal(t, Swept{Requeued: 3, Unknown: 3}, all)
			require.Equal(t, 9, b.queue.len())
			for _, id := range ids {
				b.eventTypes(t, id)
			}
		})
	})

	t.Run("CountsNothingThatWasNotCommitted", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.take(t, b.last(t, j.ID))
			b.expireLeases(t)
			require.NoError(t, b.blockEvents(t, j.ID))
			s, err := b.SweepLeases(t.Context())
			require.Error(t, err)
			require.Equal(t, Swept{}, s)
			require.NotNil(t, b.last(t, j.ID).LeaseToken)
			require.Equal(t, 1, b.queue.len())
		})
	})
}

func TestSweepQueue(t *testing.T) {
	t.Parallel()

	sweep := func(t *testing.T, b *testBundle) Swept {
		t.Helper()
		s, err := b.SweepQueue(t.Context())
		require.NoError(t, err)
		return s
	}
	// old makes attempts due long ago.
	old := func(t *testing.T, b *testBundle) {
		t.Helper()
		require.NoError(t, b.exec(t, "UPDATE attempts SET due_at = "+b.store.Now(-2*b.lease)))
	}

	t.Run("RequeuesWhatNobodyWillWorkOn", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			b.queue.kill(*a.QueueEntry)
			require.Equal(t, Swept{}, sweep(t, b), "it has not been due for a lease")
			old(t, b)
			require.Equal(t, Swept{Requeued: 1}, sweep(t, b))
			require.Equal(t, Swept{}, sweep(t, b))
			b.sent(t, a)
			b.eventTypes(t, j.ID)
		})
	})

	t.Run("RequeuesWhatHasNoEntryAtAll", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			require.NoError(t, b.exec(t, "UPDATE attempts SET queue_entry = NULL"))
			old(t, b)
			require.Equal(t, Swept{Requeued: 1}, sweep(t, b))
			b.sent(t, a)
		})
	})

	t.Run("LeavesWhatWaitsInALongQueue", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			old(t, b)
			require.Equal(t, Swept{}, sweep(t, b))
			require.Equal(t, *a.QueueEntry, *b.attempt(t, a.ID).QueueEntry)
		})
	})

	// The entry waits in the queue of a provider that this process does not know.
	t.Run("LeavesWhatAnotherProcessServesAndRequeuesWhatNoneDoes", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			busy := b.running(t, b.last(t, b.create(t, "plain").ID)) // somewhere
			a := b.last(t, b.create(t, "plain").ID)
			b.queue.strand(*a.QueueEntry)
			require.Equal(t, "demo/a", b.queue.entries[*a.QueueEntry].target)
			waits := func(d time.Duration) {
				require.NoError(t, b.exec(t, "UPDATE attempts SET due_at = "+b.store.Now(-d)+" WHERE id = '"+a.ID+"'"))
			}
			waits(100 * b.lease)
			require.Equal(t, Swept{}, sweep(t, b), "a place will be free")
			b.expireLeases(t)
			waits(2 * b.lease)
			require.Equal(t, Swept{}, sweep(t, b), "who serves it may be starting")
			waits(5 * b.lease)
			require.NoError(t, b.exec(t, "UPDATE attempts SET lease_expires_at = "+b.store.Now(b.lease)+", target = 'other/a' WHERE id = '"+busy.Attempt.ID+"'"))
			require.Equal(t, Swept{Requeued: 1}, sweep(t, b), "another provider is served")
			require.NotEqual(t, *a.QueueEntry, *b.attempt(t, a.ID).QueueEntry)
			require.False(t, b.queue.entries[*a.QueueEntry].unserved)
			require.True(t, b.queue.entries[*b.attempt(t, a.ID).QueueEntry].unserved, "any process may take it now")
			b.sent(t, a)
		})
	})

	t.Run("FindsTheLostOneBehindALongQueue", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.sweepBatch = 2
			for range 5 {
				b.create(t, "plain")
			}
			old(t, b)
			lost := b.last(t, b.create(t, "plain").ID)
			require.NoError(t, b.exec(t, "UPDATE attempts SET due_at = "+b.store.Now(-b.lease*3/2)+" WHERE id = '"+lost.ID+"'"))
			b.queue.kill(*lost.QueueEntry)
			require.Equal(t, Swept{Requeued: 1}, sweep(t, b))
		})
	})

	t.Run("LeavesARetryThatWaits", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.fails(t, b.last(t, j.ID), true)
			b.queue.kill(*b.last(t, j.ID).QueueEntry)
			require.Equal(t, Swept{}, sweep(t, b))
		})
	})

	t.Run("LeavesWhatAWorkerTookMeanwhile", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			l := b.take(t, a)
			err := b.change(b.sys, viewerOf(b.sys), j.ID, func(c *change) error {
				return c.requeue(a, b.queue.Enqueue, attempt.QueueEntry(*a.QueueEntry), attempt.LeaseTokenIsNil())
			})
			require.ErrorIs(t, err, errLost)
			require.Equal(t, 1, b.queue.len())
			require.NoError(t, b.MarkSent(t.Context(), l))
		})
	})
}

func TestRelease(t *testing.T) {
	t.Parallel()

	t.Run("GivesTheAttemptToAnotherWorkerAtOnce", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			l := b.take(t, a)
			require.NoError(t, b.Release(t.Context(), l))
			require.ErrorIs(t, b.MarkSent(t.Context(), l), ErrNotYours)
			require.NoError(t, b.Release(t.Context(), l), "a second time it is nothing")
			require.Equal(t, 2, b.queue.len())
			b.sent(t, a)
		})
	})

	t.Run("KeepsWhatWasSent", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			l := b.sent(t, a)
			require.NoError(t, b.Release(t.Context(), l))
			require.NoError(t, b.Beat(t.Context(), l))
			require.Equal(t, 1, b.queue.len())
		})
	})
}
