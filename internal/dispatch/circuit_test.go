package dispatch

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
