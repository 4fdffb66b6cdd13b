package dispatch

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/jobevent"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

// lingering acknowledges, falls silent, and brings an answer after the signal, unless it is stopped.
func lingering(signal <-chan struct{}) func(c *call) providers.Outcome {
	return func(c *call) providers.Outcome {
		c.ack()
		c.r.Unknown(timedOut())
		if !c.until(signal) {
			return aborted()
		}
		return ok()
	}
}

func TestLingersWithoutItsSlotAndALateAnswerWins(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		late := make(chan struct{})
		s := newScript(func(c *call) providers.Outcome {
			if c.number == 1 {
				return lingering(late)(c)
			}
			return ok()
		})
		p := start(t, address, options{places: 1, script: s})
		j, a := p.create(t, "single")
		a = p.becomes(t, a.ID, attempt.StateUNKNOWN)
		require.Equal(t, providers.CodeIdleTimeout, *a.ErrorCode)
		require.NotNil(t, a.AcknowledgedAt)
		require.Equal(t, job.StateUNKNOWN, p.job(t, j.ID).State)

		_, other := p.create(t, "single") // the only slot is free again
		p.becomes(t, other.ID, attempt.StateSUCCEEDED)
		require.Equal(t, attempt.StateUNKNOWN, p.attempt(t, a.ID).State)

		close(late)
		a = p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		require.Nil(t, a.ErrorCode)
		require.JSONEq(t, good, string(p.job(t, j.ID).Result))
	})
}

func TestAfterTheLingerTheFirstReasonStays(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		over := make(chan struct{})
		var settled atomic.Int32
		s := newScript(func(c *call) providers.Outcome {
			c.r.Unknown(timedOut())
			defer close(over)
			return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: "LATER", Message: "later"}}
		})
		p := start(t, address, options{script: s, wrap: func(j Jobs) Jobs {
			return &faulty{Jobs: j, settle: func() error { settled.Add(1); return nil }}
		}})
		j, a := p.create(t, "single")
		await.Receive(t, "end", over)
		require.NoError(t, p.stop(await.Patience)) // everything is written
		a = p.attempt(t, a.ID)
		require.Equal(t, attempt.StateUNKNOWN, a.State)
		require.Equal(t, providers.CodeIdleTimeout, *a.ErrorCode)
		require.Equal(t, 4, p.job(t, j.ID).LastEvent, "both created, both UNKNOWN, and no more")
		require.EqualValues(t, 1, settled.Load(), "the second time would count as a lost race")
	})
}

func TestCancellingStopsALocalRequestAtOnceAndDropsItsAnswer(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		for name, do := range map[string]func(<-chan struct{}) func(*call) providers.Outcome{"Running": held, "Lingering": lingering} {
			t.Run(name, func(t *testing.T) {
				stopped := make(chan struct{})
				s := newScript(func(c *call) providers.Outcome {
					do(nil)(c)
					close(stopped)
					return ok() // the answer came all the same
				})
				p := start(t, address, options{lease: time.Hour, script: s}) // no heartbeat will tell
				j, a := p.create(t, "single")
				p.becomes(t, a.ID, map[string]attempt.State{"Running": attempt.StateRUNNING, "Lingering": attempt.StateUNKNOWN}[name])
				_, err := p.CancelAttempt(p.ann, a.ID, nil)
				require.NoError(t, err)
				await.Receive(t, "end of the request", stopped)
				require.NoError(t, p.stop(await.Patience))
				a = p.attempt(t, a.ID)
				require.Equal(t, attempt.StateCANCELLED, a.State)
				require.Equal(t, 5, *a.OutputTokens, "the usage is kept")
				require.Equal(t, job.StateWAITING, p.job(t, j.ID).State)
				require.Empty(t, p.job(t, j.ID).Result)
			})
		}
	})
}

func TestAStoppedRequestsUsageIsKept(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{script: newScript(func(c *call) providers.Outcome {
			out := held(nil)(c)
			out.Usage = &providers.Usage{InputTokens: new(7)}
			return out
		})})
		j, a := p.create(t, "single")
		p.becomes(t, a.ID, attempt.StateRUNNING)
		_, err := p.CancelJob(p.ann, j.ID, nil)
		require.NoError(t, err)
		await.Until(t, "the usage is written", func() bool { return p.attempt(t, a.ID).InputTokens != nil })
		require.Equal(t, attempt.StateCANCELLED, p.attempt(t, a.ID).State)
	})
}

func TestCancellingStopsARequestOfAnotherProcessByItsHeartbeat(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		for name, do := range map[string]func(<-chan struct{}) func(*call) providers.Outcome{"Running": held, "Lingering": lingering} {
			t.Run(name, func(t *testing.T) {
				stopped := make(chan time.Time, 1)
				s := newScript(func(c *call) providers.Outcome {
					out := do(nil)(c)
					stopped <- time.Now()
					return out
				})
				const lease = 2 * time.Second
				p := start(t, address, options{lease: lease, script: s})
				other := start(t, address, options{lease: lease, idle: true})
				_, a := p.create(t, "single")
				p.becomes(t, a.ID, map[string]attempt.State{"Running": attempt.StateRUNNING, "Lingering": attempt.StateUNKNOWN}[name])
				_, err := other.CancelAttempt(other.ann, a.ID, nil)
				require.NoError(t, err)
				begin := time.Now()
				require.Less(t, await.Receive(t, "end of the request", stopped).Sub(begin), lease)
				require.NoError(t, p.stop(await.Patience))
			})
		}
	})
}

func TestHeartbeatKeepsALongRequest(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		const lease = 2500 * time.Millisecond
		s := newScript(func(c *call) providers.Outcome {
			c.ack()
			long := time.NewTimer(2*lease + lease/5)
			defer long.Stop()
			select {
			case <-long.C:
				return ok()
			case <-c.ctx.Done():
				return aborted()
			}
		})
		p := start(t, address, options{lease: lease, script: s})
		start(t, address, options{lease: lease, script: s}) // sweeps too
		_, a := p.create(t, "single")
		a = p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		require.NoError(t, p.stop(await.Patience))
		n, err := p.store.Client().JobEvent.Query().
			Where(jobevent.Or(jobevent.To("UNKNOWN"), jobevent.Type(jobs.EventAttemptRequeued))).Count(p.sys)
		require.NoError(t, err)
		require.Zero(t, n)
		p.script.once(t, a.ID)
	})
}

// TestAnAcknowledgementIsWrittenLater: the database was away when the provider acknowledged.
func TestAnAcknowledgementIsWrittenLater(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		release := make(chan struct{})
		var tries atomic.Int32
		s := newScript(func(c *call) providers.Outcome {
			c.ack()
			life := time.NewTicker(50 * time.Millisecond)
			defer life.Stop()
			for {
				select {
				case <-life.C:
					c.r.Progress()
				case <-release:
					return ok()
				}
			}
		})
		p := start(t, address, options{script: s, wrap: func(j Jobs) Jobs {
			return &faulty{Jobs: j, ack: func() error {
				if tries.Add(1) == 1 {
					return errAway
				}
				return nil
			}}
		}})
		_, a := p.create(t, "single")
		p.becomes(t, a.ID, attempt.StateRUNNING)
		require.EqualValues(t, 2, tries.Load())
		close(release)
		p.becomes(t, a.ID, attempt.StateSUCCEEDED)
	})
}
