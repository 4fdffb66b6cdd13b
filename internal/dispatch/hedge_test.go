package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/providers"
)

func TestHedgesAfterSilenceAndTellsTheLoserToStop(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		release, loser := make(chan struct{}), make(chan struct{})
		p := start(t, address, options{script: newScript(func(c *call) providers.Outcome {
			if c.Model == "a" {
				defer close(loser)
				return held(nil)(c)
			}
			return held(release)(c)
		})})
		j, a := p.create(t, "race")
		require.Equal(t, a.ID, p.script.next(t).AttemptID)
		hedge := p.attempt(t, p.script.next(t).AttemptID)
		require.Equal(t, attempt.ReasonHEDGE, hedge.Reason)
		require.Equal(t, "fake/b", hedge.Target)
		require.GreaterOrEqual(t, hedge.CreatedAt.Sub(*p.attempt(t, a.ID).AcknowledgedAt), 150*time.Millisecond)
		require.Equal(t, attempt.StateRUNNING, p.attempt(t, a.ID).State)
		p.becomes(t, hedge.ID, attempt.StateRUNNING)

		close(release)
		p.becomes(t, hedge.ID, attempt.StateSUCCEEDED)
		await.Receive(t, "end of the loser", loser)
		require.Equal(t, attempt.StateSUPERSEDED, p.attempt(t, a.ID).State)
		require.Equal(t, hedge.ID, *p.job(t, j.ID).CompletedByID)
		require.NoError(t, p.stop(await.Patience))
		require.Equal(t, attempt.StateSUPERSEDED, p.attempt(t, a.ID).State)
		p.script.once(t, a.ID, hedge.ID)
	})
}

func TestProgressPutsTheHedgeOff(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		const quiet = 700 * time.Millisecond
		last := make(chan time.Time, 1)
		p := start(t, address, options{script: newScript(func(c *call) providers.Outcome {
			if c.Model != "a" {
				return ok()
			}
			c.ack()
			life := time.NewTicker(quiet / 10)
			defer life.Stop()
			for range 15 {
				<-life.C
				c.r.Progress()
			}
			last <- time.Now()
			c.until(nil)
			return aborted()
		})})
		j, a := p.createWith(t, jobs.CreateInput{Task: "race", HedgeAfterMS: new(int(quiet.Milliseconds()))})
		p.becomes(t, a.ID, attempt.StateSUPERSEDED)
		hedge := p.attempts(t, j.ID)[1]
		require.GreaterOrEqual(t, hedge.CreatedAt.Sub(<-last), quiet*9/10)
		require.Equal(t, job.StateSUCCEEDED, p.job(t, j.ID).State)
	})
}

func TestHedgeAfter(t *testing.T) {
	t.Parallel()
	ms := func(n int) *int { return &n }
	for name, tc := range map[string]struct {
		race bool
		task time.Duration
		own  *int
		want time.Duration
	}{
		"TasksOwn":                 {true, time.Second, nil, time.Second},
		"IntentOverrides":          {true, time.Second, ms(50), 50 * time.Millisecond},
		"IntentWithoutTasks":       {true, 0, ms(50), 50 * time.Millisecond},
		"IntentSwitchesItOff":      {true, time.Second, ms(0), 0},
		"NeverByItself":            {true, 0, nil, 0},
		"ForbiddenAlthoughSet":     {false, time.Second, nil, 0},
		"IntentCannotPermitRacing": {false, 0, ms(50), 0},
	} {
		l := &jobs.Lease{Job: &ent.Job{HedgeAfterMs: tc.own}, Task: &tasks.Definition{RaceAllowed: tc.race, HedgeAfter: tc.task}}
		require.Equal(t, tc.want, hedgeAfter(l), name)
	}
}

// TestHedgeIsGuarded asks for a hedge where there must be none.
func TestHedgeIsGuarded(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{idle: true})
		sent := func(in jobs.CreateInput, acknowledged bool) (*ent.Job, *ent.Attempt) {
			j, a := p.createWith(t, in)
			l, err := p.Take(t.Context(), a.ID, *a.QueueEntry)
			require.NoError(t, err)
			require.NoError(t, p.MarkSent(t.Context(), l))
			if acknowledged {
				require.NoError(t, p.Acknowledge(t.Context(), l, "", ""))
			}
			return j, a
		}
		hedges := func(j *ent.Job, a *ent.Attempt) int {
			before := len(p.attempts(t, j.ID))
			require.NoError(t, p.Hedge(t.Context(), a.ID))
			return len(p.attempts(t, j.ID)) - before
		}
		race := jobs.CreateInput{Task: "race"}

		j, a := sent(race, true)
		require.Equal(t, 1, hedges(j, a))
		require.Zero(t, hedges(j, a), "another attempt is open")

		j, a = sent(race, false)
		require.Zero(t, hedges(j, a), "not acknowledged")

		j, a = sent(race, true)
		_, err := p.Settle(t.Context(), a.ID, jobs.Outcome{Unknown: true, Failure: &jobs.Failure{Code: "X", Message: "x"}})
		require.NoError(t, err)
		require.Zero(t, hedges(j, a), "UNKNOWN blocks")

		j, a = sent(race, true)
		_, err = p.CancelAttempt(p.ann, a.ID, nil)
		require.NoError(t, err)
		require.Zero(t, hedges(j, a), "settled")

		j, a = sent(jobs.CreateInput{Task: "route", HedgeAfterMS: new(1)}, true)
		require.Zero(t, hedges(j, a), "the task forbids racing")

		j, a = sent(jobs.CreateInput{Task: "race", Fallbacks: []string{}}, true)
		require.Zero(t, hedges(j, a), "no fallback is left")
	})
}

// TestTheRouteComesToWhatTurnedAHedgeAway: a job that is hedged in vain has the fallback that it would have had.
func TestTheRouteComesToWhatTurnedAHedgeAway(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		fail := make(chan struct{})
		p := start(t, address, options{circuit: providers.CircuitBreaker{Failures: 1, OpenFor: 5 * time.Second}, script: newScript(func(c *call) providers.Outcome {
			switch c.Model {
			case "a":
				c.ack()
				if !c.until(fail) {
					return aborted()
				}
				return no(false)
			case "b":
				return ok()
			default:
				return no(false)
			}
		})})
		p.trip(t, "fake/b")
		j, a := p.create(t, "race")
		await.Until(t, "both fallbacks are hedged at", func() bool { return len(p.attempts(t, j.ID)) == 3 })
		as := p.attempts(t, j.ID)
		p.requireRefused(t, as[1].ID)
		p.becomes(t, as[2].ID, attempt.StateFAILED)
		p.circuit(t, "fake/b", 1)
		close(fail)
		p.becomes(t, a.ID, attempt.StateFAILED)
		as = p.attempts(t, j.ID)
		require.Len(t, as, 4)
		require.Equal(t, "fake/b", as[3].Target)
		require.Equal(t, attempt.ReasonFALLBACK, as[3].Reason)
		p.becomes(t, as[3].ID, attempt.StateSUCCEEDED)
		require.Equal(t, as[3].ID, *p.job(t, j.ID).CompletedByID)
		p.script.once(t, a.ID, as[2].ID, as[3].ID)
	})
}
