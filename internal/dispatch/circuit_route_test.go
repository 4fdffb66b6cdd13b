package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

// pass lets synctest's clock run; nothing really waits.
func pass(d time.Duration) { <-time.After(d) }

// trip opens the circuit of a target, which opens at the first failure.
func (p *process) trip(t *testing.T, target string) {
	t.Helper()
	permit, f := p.d.circuits.enter(target)
	require.Nil(t, f)
	permit.settle(errUnhealthy)
}

// circuit waits for the state of a target's circuit: 0 closed, 1 half-open, 2 open.
func (p *process) circuit(t *testing.T, target string, want int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("the circuit of %s is %v", target, want), func() bool { return p.d.Circuits()[target] == want },
		func() string { return fmt.Sprint(p.d.Circuits()[target]) })
}

// requireRefused looks at an attempt that was not sent.
func (p *process) requireRefused(t *testing.T, attemptID string) *attemptError {
	t.Helper()
	a := p.becomes(t, attemptID, attempt.StateFAILED)
	require.Equal(t, codeCircuitOpen, *a.ErrorCode)
	require.True(t, *a.ErrorRetryable)
	require.Nil(t, a.SentAt)
	require.NotContains(t, p.script.requests(), attemptID)
	e := &attemptError{message: *a.ErrorMessage}
	if a.ErrorRetryAfterMs != nil {
		e.retryAfter = time.Duration(*a.ErrorRetryAfterMs) * time.Millisecond
	}
	return e
}

type attemptError struct {
	message    string
	retryAfter time.Duration
}

func TestAnOpenCircuitSendsNothingAndTheRouteGoesOn(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{circuit: providers.CircuitBreaker{Failures: 2, OpenFor: time.Hour}, script: newScript(func(c *call) providers.Outcome {
			if c.Model == "a" {
				return no(true)
			}
			return ok()
		})})
		for range 2 {
			require.Zero(t, p.d.Circuits()["fake/a"])
			_, a := p.create(t, "single")
			require.Equal(t, providers.CodeOverloaded, *p.becomes(t, a.ID, attempt.StateFAILED).ErrorCode)
		}
		p.circuit(t, "fake/a", 2)
		j, a := p.create(t, "route")
		require.Greater(t, p.requireRefused(t, a.ID).retryAfter, 50*time.Minute)
		next := p.attempts(t, j.ID)[1]
		require.Equal(t, attempt.ReasonFALLBACK, next.Reason)
		require.Equal(t, "fake/b", next.Target)
		p.becomes(t, next.ID, attempt.StateSUCCEEDED)
		require.Equal(t, 1, p.refused.of("fake/a"))
		require.Zero(t, p.refused.of("fake/b"))
		require.Equal(t, map[string]int{"fake/a": 2, "fake/b": 0, "fake/c": 0}, p.d.Circuits())

		// By hand the owner gets the same answer, at once.
		j, a = p.createWith(t, jobs.CreateInput{Task: "single"})
		p.requireRefused(t, a.ID)
		started, err := p.StartAttempt(p.ann, j.ID, new("fake/a"))
		require.NoError(t, err)
		require.Contains(t, p.requireRefused(t, started.Attempt.ID).message, "fake/a has failed 2 times in a row or more, and is tried again in ")
		require.Len(t, p.attempts(t, j.ID), 2)
	})
}

func TestACircuitStaysClosedWhileTheTargetAnswers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		says := []providers.Outcome{{Kind: providers.Completed, Output: []byte(`{"other":1}`)}}
		for _, code := range []string{providers.CodeRefused, providers.CodeContentFilter, providers.CodeBadRequest, providers.CodeUnauthorized, providers.CodeRateLimited} {
			says = append(says, providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{Code: code, Message: "no"}})
		}
		p := start(t, address, options{circuit: providers.CircuitBreaker{Failures: 1, OpenFor: time.Hour},
			script: newScript(func(c *call) providers.Outcome { return says[(c.number-1)%len(says)] })})
		for range says {
			_, a := p.create(t, "single")
			require.NotNil(t, p.becomes(t, a.ID, attempt.StateFAILED).SentAt)
			require.Zero(t, p.d.Circuits()["fake/a"])
		}
	})
}

func TestARetryWaitsUntilTheCircuitIsHalfOpen(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{circuit: providers.CircuitBreaker{Failures: 1, OpenFor: 5 * time.Second}})
		p.trip(t, "fake/a")
		j, a := p.create(t, "patient")
		require.Greater(t, p.requireRefused(t, a.ID).retryAfter, time.Duration(0))
		retry := p.attempts(t, j.ID)[1]
		require.Equal(t, attempt.ReasonRETRY, retry.Reason)
		require.False(t, retry.DueAt.Before(p.d.circuits["fake/a"].halfOpenAt.Truncate(time.Microsecond)))
		p.becomes(t, retry.ID, attempt.StateSUCCEEDED)
		p.circuit(t, "fake/a", 0)
		p.script.once(t, retry.ID)
	})
}

// TestATrialThatEndsWithoutAWordGivesItsPermitBack: otherwise the target would never get a request again.
func TestATrialThatEndsWithoutAWordGivesItsPermitBack(t *testing.T) {
	t.Parallel()
	halfOpen := func(t *testing.T, address string, o options) *process {
		t.Helper()
		o.circuit = providers.CircuitBreaker{Failures: 1, OpenFor: time.Millisecond}
		p := start(t, address, o)
		p.trip(t, "fake/a")
		p.circuit(t, "fake/a", 1)
		return p
	}
	closes := func(t *testing.T, p *process) {
		t.Helper()
		require.Equal(t, 1, p.d.Circuits()["fake/a"])
		_, a := p.create(t, "single")
		p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		p.circuit(t, "fake/a", 0)
	}

	t.Run("NothingWasSent", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, address string) {
			var p *process
			first := make(chan string, 1)
			refused := false
			p = halfOpen(t, address, options{wrap: func(j Jobs) Jobs {
				return &faulty{Jobs: j, before: func() {
					if !refused { // cancelled by its owner just before the mark
						refused = true
						_, err := p.CancelAttempt(p.ann, await.Receive(t, "attempt", first), nil)
						require.NoError(t, err)
					}
				}}
			}})
			_, a := p.create(t, "single")
			first <- a.ID
			p.becomes(t, a.ID, attempt.StateCANCELLED)
			p.drained(t)
			closes(t, p)
			require.NotContains(t, p.script.requests(), a.ID)
		})
	})

	t.Run("SettledBySomebodyElse", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, address string) {
			p := halfOpen(t, address, options{script: newScript(func(c *call) providers.Outcome {
				if c.number > 1 {
					return ok()
				}
				return held(nil)(c)
			})})
			_, a := p.create(t, "single")
			p.becomes(t, a.ID, attempt.StateRUNNING)
			_, other := p.create(t, "single")
			require.Zero(t, p.requireRefused(t, other.ID).retryAfter, "one trial at a time")
			_, err := p.CancelAttempt(p.ann, a.ID, nil)
			require.NoError(t, err)
			p.drained(t)
			closes(t, p)
		})
	})

	t.Run("APanic", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, address string) {
			p := halfOpen(t, address, options{script: newScript(func(c *call) providers.Outcome {
				if c.number > 1 {
					return ok()
				}
				panic("a bug in an adapter")
			})})
			_, a := p.create(t, "single")
			p.becomes(t, a.ID, attempt.StateUNKNOWN)
			p.drained(t)
			closes(t, p)
		})
	})
}

// TestAnUnknownTrialDecidesAtOnce although its worker goes on listening.
func TestAnUnknownTrialDecidesAtOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		late := make(chan struct{})
		p := start(t, address, options{circuit: providers.CircuitBreaker{Failures: 1, OpenFor: time.Hour}, script: newScript(func(c *call) providers.Outcome {
			c.ack()
			c.r.Unknown(timedOut())
			if !c.until(late) {
				return aborted()
			}
			return ok()
		})})
		_, a := p.create(t, "single")
		p.becomes(t, a.ID, attempt.StateUNKNOWN)
		p.circuit(t, "fake/a", 2)
		_, next := p.create(t, "single")
		p.requireRefused(t, next.ID)
		close(late)
		p.becomes(t, a.ID, attempt.StateSUCCEEDED)
		p.circuit(t, "fake/a", 2)
	})
}

func TestAHedgeGoesOnWhereTheCircuitIsOpen(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{circuit: providers.CircuitBreaker{Failures: 1, OpenFor: time.Hour}, script: newScript(func(c *call) providers.Outcome {
			if c.Model == "a" {
				return held(nil)(c)
			}
			return ok()
		})})
		p.trip(t, "fake/b")
		j, a := p.create(t, "race")
		p.becomes(t, a.ID, attempt.StateSUPERSEDED)
		as := p.attempts(t, j.ID)
		require.Len(t, as, 3)
		p.requireRefused(t, as[1].ID)
		require.Equal(t, []string{"fake/a", "fake/b", "fake/c"}, []string{as[0].Target, as[1].Target, as[2].Target})
		require.Equal(t, attempt.ReasonHEDGE, as[2].Reason)
		require.Equal(t, as[2].ID, *p.job(t, j.ID).CompletedByID)
		p.script.once(t, a.ID, as[2].ID)
	})
}

func TestACircuitBreakerCanBeOff(t *testing.T) {
	t.Parallel()
	p := start(t, databases.SQLite(t), options{script: newScript(func(*call) providers.Outcome { return no(false) })})
	for range 10 {
		_, a := p.create(t, "single")
		require.NotNil(t, p.becomes(t, a.ID, attempt.StateFAILED).SentAt)
	}
	require.Empty(t, p.d.Circuits())
}

func TestResendsNothingWhileTheCircuitIsOpen(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		s := newScript(nil)
		p := start(t, address, options{idle: true, script: s, registry: configured(t, s, func(c *providers.Config) {
			c.Idempotent, c.CircuitBreaker = true, providers.CircuitBreaker{Failures: 1, OpenFor: time.Hour}
		})})
		j, a := p.lost(t, "single", "")
		p.later(t, a)
		for _, target := range []string{"fake/a", "fake/b", "fake/c"} {
			p.trip(t, target)
			p.reconciled(t)
			require.Empty(t, s.requests())
			require.Nil(t, p.attempt(t, a.ID).ResentAt, "it is put off, not counted")
		}
		delete(p.d.circuits, "fake/a")
		p.reconciled(t)
		p.script.once(t, a.ID)
		require.NotNil(t, p.job(t, j.ID).Result)
	})
}
