package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/providers"
)

// startOther runs a process on the same database that does not know the provider "fake".
func startOther(t *testing.T, address string, o options) *process {
	t.Helper()
	o.script = newScript(nil)
	o.registry = scripted(t, o.script, providers.Config{Name: "other"})
	return start(t, address, o)
}

// passes waits until a process has taken all that its queue for the rest held before.
func (p *process) passes(t *testing.T) {
	t.Helper()
	var last int64
	require.NoError(t, p.store.Tx(p.sys, func(tx *store.Tx) (err error) {
		last, err = p.queue.EnqueueUnserved(p.sys, tx, "att_nobody", "fake/a", time.Now())
		return err
	}))
	await.Until(t, "the queue for the rest runs empty", func() bool {
		row, err := p.queue.client.JobGet(t.Context(), last)
		require.NoError(t, err)
		return row.FinalizedAt != nil && p.number(t, "SELECT count(*) FROM river_job WHERE queue = '"+restQueue+"' AND finalized_at IS NULL") == 0
	})
}

// TestAnAttemptStartedWhereItsProviderIsNotKnownIsSentByAnotherProcess: both processes are well, and the one that knows the
// provider comes second every time.
func TestAnAttemptStartedWhereItsProviderIsNotKnownIsSentByAnotherProcess(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{idle: true})
		other := startOther(t, address, options{})
		var ids []string
		for range 2 * restWorkers {
			j, first := p.create(t, "single")
			v, err := p.Settle(t.Context(), first.ID, jobs.Outcome{Failure: &jobs.Failure{Code: "REFUSED", Message: "No."}})
			require.NoError(t, err)
			require.True(t, v.Landed)
			started, err := other.StartAttempt(other.ann, j.ID, nil)
			require.NoError(t, err)
			ids = append(ids, started.Attempt.ID)
		}
		other.passes(t)
		p.work(t)
		for _, id := range ids {
			p.becomes(t, id, attempt.StateSUCCEEDED)
		}
		p.script.once(t, ids...)
	})
}

// TestALostWorkersAttemptIsLeftToTheProcessThatKnowsItsProvider: it was due for long before it was queued again, by a process
// that does not know the provider, and that must not take the new entry for one that nobody serves.
func TestALostWorkersAttemptIsLeftToTheProcessThatKnowsItsProvider(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		lost := start(t, address, options{idle: true})
		_, a := lost.create(t, "single")
		_, err := lost.Take(t.Context(), a.ID, *a.QueueEntry) // and it is never heard of again
		require.NoError(t, err)
		lost.exec(t, "UPDATE attempts SET due_at = "+lost.store.Now(-time.Hour)+", lease_expires_at = "+lost.store.Now(-time.Minute))

		other := startOther(t, address, options{idle: true})
		swept, err := other.SweepLeases(t.Context())
		require.NoError(t, err)
		require.Equal(t, jobs.Swept{Requeued: 1}, swept)
		swept, err = other.SweepQueue(t.Context())
		require.NoError(t, err)
		require.Zero(t, swept)
		other.work(t)
		other.passes(t)

		p := start(t, address, options{})
		p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		p.script.once(t, a.ID)
	})
}

// TestAnAttemptStartedForAProviderThatIsGoneIsNotLeftWaiting: nobody knows it, the process that adds the attempt neither.
func TestAnAttemptStartedForAProviderThatIsGoneIsNotLeftWaiting(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		gone := start(t, address, options{idle: true})
		j, first := gone.create(t, "single")
		_, err := gone.Settle(t.Context(), first.ID, jobs.Outcome{Failure: &jobs.Failure{Code: "REFUSED", Message: "No."}})
		require.NoError(t, err)
		other := startOther(t, address, options{lease: shortLease})
		began := time.Now()
		started, err := other.StartAttempt(other.ann, j.ID, nil)
		require.NoError(t, err)
		a := other.becomes(t, started.Attempt.ID, attempt.StateFAILED)
		require.Equal(t, codeTargetUnknown, *a.ErrorCode)
		require.Greater(t, time.Since(began), 4*shortLease*9/10)
		other.script.once(t)
	})
}
