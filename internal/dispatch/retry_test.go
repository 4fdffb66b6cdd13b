package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/providers"
)

// TestAnEntryIsMadeAvailableWhenItIsDue runs no worker and no scheduler of River's.
func TestAnEntryIsMadeAvailableWhenItIsDue(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{idle: true})
		due := time.Now().Add(1500 * time.Millisecond)
		var entry int64
		require.NoError(t, p.store.Tx(p.sys, func(tx *store.Tx) (err error) {
			entry, err = p.queue.Enqueue(p.sys, tx, "att_nobody", "fake/a", due)
			return err
		}))
		row, err := p.queue.client.JobGet(t.Context(), entry)
		require.NoError(t, err)
		require.WithinDuration(t, due, row.ScheduledAt, time.Millisecond, "River's scheduler knows when")
		require.Equal(t, 1, p.number(t, "SELECT count(*) FROM river_job WHERE state = 'scheduled'"))
		await.Until(t, "the entry is made available", func() bool { return p.number(t, "SELECT count(*) FROM river_job WHERE state = 'available'") == 1 })
		require.False(t, time.Now().Before(due))
	})
}

func TestAnEntryThatWasRolledBackIsForgotten(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{})
		require.ErrorIs(t, p.store.Tx(p.sys, func(tx *store.Tx) error {
			for _, due := range []time.Time{time.Now(), time.Now().Add(time.Millisecond)} {
				_, err := p.queue.Enqueue(p.sys, tx, "att_nobody", "fake/a", due)
				require.NoError(t, err)
			}
			return errAway
		}), errAway)
		require.Zero(t, p.number(t, "SELECT count(*) FROM river_job"))
	})
}

func TestRetriesWhenDueAndNotBefore(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		sent := make(chan time.Time, 2)
		p := start(t, address, options{script: newScript(func(c *call) providers.Outcome {
			sent <- time.Now()
			if c.number == 1 {
				out := no(true)
				out.Failure.RetryAfter = 900 * time.Millisecond // above the task's own back-off
				return out
			}
			return ok()
		})})
		j, a := p.create(t, "retry")
		p.becomes(t, a.ID, attempt.StateFAILED)
		retry := p.attempts(t, j.ID)[1]
		require.Equal(t, attempt.ReasonRETRY, retry.Reason)
		p.becomes(t, retry.ID, attempt.StateSUCCEEDED)
		require.Equal(t, "fake/a", retry.Target)
		require.GreaterOrEqual(t, retry.DueAt.Sub(<-sent), 800*time.Millisecond)
		require.False(t, (<-sent).Before(retry.DueAt))
		p.script.once(t, a.ID, retry.ID)
	})
}

// TestRiversSchedulerStandsBehindAProcessThatDied: the one that was to make the retry available is gone.
func TestRiversSchedulerStandsBehindAProcessThatDied(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		gone := start(t, address, options{script: newScript(func(*call) providers.Outcome { return no(true) })})
		j, a := gone.create(t, "later")
		gone.becomes(t, a.ID, attempt.StateFAILED)
		require.NoError(t, gone.stop(await.Patience))
		retry := gone.attempts(t, j.ID)[1]
		require.Nil(t, retry.SentAt)
		sent := make(chan time.Time, 1)
		p := start(t, address, options{script: newScript(func(*call) providers.Outcome { sent <- time.Now(); return ok() })})
		p.becomes(t, retry.ID, attempt.StateSUCCEEDED)
		require.False(t, (<-sent).Before(retry.DueAt))
		p.script.once(t, retry.ID)
	})
}
