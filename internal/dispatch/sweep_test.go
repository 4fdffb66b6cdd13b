package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/jobs"
)

const shortLease = time.Second

func TestAnotherProcessSendsWhatALostWorkerHadNotSent(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		lost := start(t, address, options{lease: shortLease, idle: true})
		_, a := lost.create(t, "single")
		_, err := lost.Take(t.Context(), a.ID, *a.QueueEntry) // and it is never heard of again
		require.NoError(t, err)
		p := start(t, address, options{lease: shortLease})
		p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		p.script.once(t, a.ID)
	})
}

func TestWhatALostWorkerHadSentIsUnknownWithinTwoLeases(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		const lease = 3 * time.Second
		p := start(t, address, options{lease: lease, idle: true})
		for _, acknowledged := range []bool{false, true} {
			_, a := p.create(t, "retry")
			l, err := p.Take(t.Context(), a.ID, *a.QueueEntry)
			require.NoError(t, err)
			require.NoError(t, p.MarkSent(t.Context(), l))
			if acknowledged {
				require.NoError(t, p.Acknowledge(t.Context(), l, "", ""))
			}
		}
		lost := time.Now()
		p.work(t)
		as, err := p.store.Client().Attempt.Query().All(p.sys)
		require.NoError(t, err)
		for _, a := range as {
			a = p.becomes(t, a.ID, attempt.StateUNKNOWN)
			require.Equal(t, jobs.CodeWorkerLost, *a.ErrorCode)
			require.Equal(t, job.StateUNKNOWN, p.job(t, a.JobID).State)
		}
		require.Less(t, time.Since(lost), 2*lease)
		require.Greater(t, time.Since(lost), lease*9/10)
		p.script.once(t)
	})
}

// TestAnEntryThatDiedWithItsWorkerIsReplaced: River had given the entry to a process that died before it leased the attempt.
func TestAnEntryThatDiedWithItsWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{lease: shortLease, idle: true})
		_, a := p.create(t, "single")
		p.exec(t, "UPDATE river_job SET state = 'running', attempt = 1, attempted_at = created_at")
		_, gone := p.create(t, "single")
		_, waits := p.create(t, "single")
		_, err := p.queue.client.JobDelete(t.Context(), *gone.QueueEntry) // and somebody emptied the queue
		require.NoError(t, err)
		p.work(t)
		p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		p.becomes(t, gone.ID, attempt.StateSUCCEEDED)
		p.becomes(t, waits.ID, attempt.StateSUCCEEDED)
		p.script.once(t, a.ID, gone.ID, waits.ID)
		require.NotEqual(t, *a.QueueEntry, *p.attempt(t, a.ID).QueueEntry)
	})
}

func TestTheSweepLeavesAloneWhatWaitsItsTurn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		release := make(chan struct{})
		p := start(t, address, options{places: 1, script: newScript(held(release))})
		_, first := p.create(t, "single")
		p.becomes(t, first.ID, attempt.StateRUNNING)
		_, waits := p.create(t, "single")
		// Due for long, and a pass of the sweep for certain.
		p.exec(t, "UPDATE attempts SET due_at = "+p.store.Now(-time.Minute)+" WHERE id = '"+waits.ID+"'")
		swept, err := p.SweepQueue(t.Context())
		require.NoError(t, err)
		require.Zero(t, swept)
		require.Equal(t, waits.QueueEntry, p.attempt(t, waits.ID).QueueEntry)
		close(release)
		p.becomes(t, waits.ID, attempt.StateSUCCEEDED)
	})
}

func TestLook(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{idle: true})
		all := []int64{1 << 40}
		want := map[int64]jobs.Entry{}
		for state, alive := range map[string]bool{
			"state = 'available'": true, "state = 'scheduled'": true, "state = 'retryable'": true, "state = 'pending'": true,
			"state = 'running', attempted_at = created_at":     true,
			"state = 'running', attempted_at = '2020-01-01'":   false,
			"state = 'completed', finalized_at = '2020-01-01'": false,
			"state = 'discarded', finalized_at = '2020-01-01'": false,
			"state = 'cancelled', finalized_at = '2020-01-01'": false,
		} {
			_, a := p.create(t, "single")
			p.exec(t, "UPDATE river_job SET "+state+" WHERE id = (SELECT queue_entry FROM attempts WHERE id = '"+a.ID+"')")
			if alive {
				want[*a.QueueEntry] = jobs.EntryAlive
			}
			all = append(all, *a.QueueEntry)
		}
		for scheduled, entry := range map[string]jobs.Entry{"created_at": jobs.EntryAlive, "'2020-01-01'": jobs.EntryElsewhere} {
			_, a := p.create(t, "single")
			p.exec(t, "UPDATE river_job SET queue = 'attempts-gone-00000000', scheduled_at = "+scheduled+
				" WHERE id = (SELECT queue_entry FROM attempts WHERE id = '"+a.ID+"')")
			want[*a.QueueEntry] = entry
			all = append(all, *a.QueueEntry)
		}
		found, err := p.queue.Look(t.Context(), all, time.Minute, time.Hour)
		require.NoError(t, err)
		for _, e := range all {
			require.Equal(t, want[e], found[e])
		}
		found, err = p.queue.Look(t.Context(), nil, time.Minute, time.Hour)
		require.NoError(t, err)
		require.Empty(t, found)
	})
}
