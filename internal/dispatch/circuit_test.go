package dispatch

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	bad := func(kind providers.OutcomeKind, code string, retryable bool) providers.Outcome {
		return providers.Outcome{Kind: kind, Failure: &providers.Failure{Code: code, Retryable: retryable}}
	}
	for _, o := range []providers.Outcome{
		bad(providers.Failed, providers.CodeUnreachable, true),
		bad(providers.Failed, providers.CodeTLS, false),
		bad(providers.Failed, providers.CodeNotSent, true),
		bad(providers.Failed, providers.CodeProviderError, true),
		bad(providers.Failed, providers.CodeOverloaded, true),
		bad(providers.Unknown, providers.CodeAckTimeout, false),
		bad(providers.Unknown, providers.CodeIdleTimeout, false),
		bad(providers.Unknown, providers.CodeTotalTimeout, false),
		bad(providers.Unknown, providers.CodeConnectionLost, false),
		bad(providers.Unknown, providers.CodeTruncatedStream, false),
		bad(providers.Unknown, providers.CodeGateway, false),
	} {
		require.Equal(t, errUnhealthy, health(o), o.Failure.Code)
	}
	for _, code := range []string{providers.CodeRefused, providers.CodeContentFilter, providers.CodeTruncated, providers.CodeNotJSON,
		providers.CodeBadRequest, providers.CodeUnauthorized} {
		require.NoError(t, health(bad(providers.Failed, code, false)), code)
	}
	require.NoError(t, health(providers.Outcome{Kind: providers.Completed, Output: []byte(`{"breaks":"the schema"}`)}))
	for _, o := range []providers.Outcome{
		bad(providers.Failed, providers.CodeRateLimited, true),
		bad(providers.Failed, providers.CodeQuotaExceeded, false),
		bad(providers.Failed, providers.CodeRedirected, false),
		bad(providers.Failed, providers.CodeMalformedAnswer, false),
		bad(providers.Failed, providers.CodeNotSent, false),
		bad(providers.Failed, providers.CodeProviderError, false),
		bad(providers.Failed, providers.CodeAborted, true),
		bad(providers.Unknown, providers.CodeAborted, false),
		bad(providers.Unknown, providers.CodeAdapter, false),
		bad(providers.Failed, providers.CodeJammed, false),
		bad(providers.Failed, "NEW", true),
		{Kind: providers.Failed},
	} {
		require.Equal(t, errNoWord, health(o), o.Failure)
	}
}

// TestCircuit has the clock of synctest.
func TestCircuit(t *testing.T) {
	t.Parallel()
	const openFor = time.Minute
	circuit := func() circuits {
		return circuits{"fake/a": newCircuit("fake/a", providers.CircuitBreaker{Failures: 3, OpenFor: openFor}, slog.New(slog.DiscardHandler))}
	}
	sent := func(t *testing.T, c circuits) *permit {
		t.Helper()
		p, f := c.enter("fake/a")
		require.Nil(t, f)
		return p
	}
	refused := func(t *testing.T, c circuits) *jobs.Failure {
		t.Helper()
		p, f := c.enter("fake/a")
		require.Nil(t, p)
		require.Equal(t, codeCircuitOpen, f.Code)
		require.True(t, f.Retryable)
		return f
	}
	fail := func(t *testing.T, c circuits, times int) {
		t.Helper()
		for range times {
			sent(t, c).settle(errUnhealthy)
		}
	}
	halfOpen := func(t *testing.T) circuits {
		t.Helper()
		c := circuit()
		fail(t, c, 3)
		pass(openFor + 1)
		return c
	}

	t.Run("OpensAfterFailuresInARowAndSaysForHowLong", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := circuit()
			fail(t, c, 2)
			sent(t, c).settle(nil)
			fail(t, c, 2)
			pass(time.Hour)
			sent(t, c).settle(errNoWord)
			require.False(t, c.open("fake/a"))
			fail(t, c, 1)
			require.True(t, c.open("fake/a"))
			pass(20 * time.Second)
			f := refused(t, c)
			require.Equal(t, 40*time.Second, f.RetryAfter)
			require.Equal(t, "No request was sent: fake/a has failed 3 times in a row or more, and is tried again in 40s.", f.Message)
			pass(f.RetryAfter + 1)
			sent(t, c)
		})
	})

	t.Run("CountsARequestThatTookLongerThanAnyWindow", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := circuit()
			a, b, d := sent(t, c), sent(t, c), sent(t, c)
			pass(24 * time.Hour)
			for _, p := range []*permit{a, b, d} {
				p.settle(errUnhealthy)
			}
			refused(t, c)
		})
	})

	t.Run("HalfOpenLetsOneThroughWhichDecides", func(t *testing.T) {
		t.Parallel()
		for name, tc := range map[string]struct {
			verdict error
			want    int
		}{"Works": {nil, 0}, "NoWord": {errNoWord, 1}, "Fails": {errUnhealthy, 2}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c := halfOpen(t)
					d := &Dispatcher{circuits: c}
					require.Equal(t, map[string]int{"fake/a": 1}, d.Circuits())
					trial := sent(t, c)
					require.Zero(t, refused(t, c).RetryAfter, "nobody knows how long the trial takes")
					trial.settle(tc.verdict)
					require.Equal(t, map[string]int{"fake/a": tc.want}, d.Circuits())
					if tc.want == 2 {
						require.Equal(t, openFor, refused(t, c).RetryAfter)
						return
					}
					for range 3 {
						sent(t, c).giveBack()
					}
				})
			})
		}
	})

	t.Run("SettlesAPermitOnce", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := halfOpen(t)
			trial := sent(t, c)
			trial.settle(errUnhealthy)
			trial.settle(nil) // a late answer
			trial.giveBack()
			refused(t, c)
			pass(openFor + 1)
			trial = sent(t, c)
			trial.giveBack()
			trial.giveBack()
			sent(t, c)
			refused(t, c)
		})
	})

	// What was under way when the circuit opened says nothing about how the target is afterwards.
	t.Run("IsNotDecidedByRequestsOfBefore", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := circuit()
			before := []*permit{sent(t, c), sent(t, c), sent(t, c)}
			fail(t, c, 3)
			pass(openFor + 1)
			sent(t, c)
			for i, verdict := range []error{nil, errUnhealthy, errNoWord} {
				before[i].settle(verdict)
				require.Zero(t, refused(t, c).RetryAfter, "still half-open, and the trial is under way")
			}
		})
	})

	t.Run("TakesNoWordFromWhatWasEndedByUs", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := circuit()
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			for range 5 {
				sent(t, c).outcome(ended, no(true))
			}
			require.False(t, c.open("fake/a"))
			fail(t, c, 2)
			sent(t, c).outcome(ended, ok()) // the answer had come before
			fail(t, c, 2)
			require.False(t, c.open("fake/a"))
		})
	})
}

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
	poll(t, func() bool { return p.d.Circuits()[target] == want }, func() string { return "the circuit is not as wanted" })
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
						_, err := p.CancelAttempt(p.ann, signal(t, first, "attempt"), nil)
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
	p := start(t, sqliteAddress(t), options{script: newScript(func(*call) providers.Outcome { return no(false) })})
	for range 10 {
		_, a := p.create(t, "single")
		require.NotNil(t, p.becomes(t, a.ID, attempt.StateFAILED).SentAt)
	}
	require.Empty(t, p.d.Circuits())
}
