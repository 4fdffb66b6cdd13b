package jobs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

func TestSettle(t *testing.T) {
	t.Parallel()

	t.Run("MovesNothingWhenWhatFollowsCannotBeQueued", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			b.running(t, a)
			before, notices := b.eventTypes(t, j.ID), b.notifier.count(j.ID)
			for _, retryable := range []bool{false, true} {
				b.queue.fail(errBroken)
				_, err := b.Settle(t.Context(), a.ID, Outcome{Failure: &Failure{Code: "X", Retryable: retryable}})
				require.ErrorIs(t, err, errBroken)
				require.Equal(t, attempt.StateRUNNING, b.attempt(t, a.ID).State)
				require.Equal(t, job.StateRUNNING, b.job(t, j.ID).State)
				require.Equal(t, before, b.eventTypes(t, j.ID))
				require.Equal(t, notices, b.notifier.count(j.ID), "nothing is told of what did not happen")
			}
			b.queue.fail(nil)
			require.True(t, b.fails(t, a, false).Landed)
			require.Greater(t, b.notifier.count(j.ID), notices)
		})
	})

	t.Run("KeepsTheErrorAndTheUsage", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			a := b.last(t, j.ID)
			b.running(t, a)
			v := b.settle(t, a, Outcome{
				Failure: &Failure{Code: "RATE_LIMITED", Message: "Too many requests.", Retryable: true, RetryAfter: 1500 * time.Millisecond},
				Usage:   Usage{InputTokens: new(3)}, ProviderRequestID: "req-9",
			})
			require.Equal(t, "RATE_LIMITED", *v.Attempt.ErrorCode)
			require.Equal(t, "Too many requests.", *v.Attempt.ErrorMessage)
			require.True(t, *v.Attempt.ErrorRetryable)
			require.Equal(t, 1500, *v.Attempt.ErrorRetryAfterMs)
			require.Equal(t, 3, *v.Attempt.InputTokens)
			require.Nil(t, v.Attempt.OutputTokens)
			require.Equal(t, "req-9", *v.Attempt.ProviderRequestID)
		})
	})

	t.Run("LeavesUnknownOpenUntilItIsKnown", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.unknown(t, "plain")
			require.Nil(t, a.FinishedAt)
			require.Equal(t, 1, j.Version)
			require.False(t, b.loses(t, a).Landed, "UNKNOWN does not become UNKNOWN")
			v := b.fails(t, a, false)
			require.True(t, v.Landed)
			require.Equal(t, attempt.StateFAILED, v.Attempt.State)
			require.Equal(t, "demo/b", b.last(t, j.ID).Target)
		})
	})

	t.Run("FailsOutputThatBreaksTheContract", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for _, tc := range []struct{ name, output, code string }{
				{"nothing", ``, CodeOutputNotJSON},
				{"prose", `Here you are: {"answer":"x"}`, CodeOutputNotJSON},
				{"fences", "```json\n{\"answer\":\"x\"}\n```", CodeOutputNotJSON},
				{"text after it", `{"answer":"x"} Anything else?`, CodeOutputNotJSON},
				{"second document", `{"answer":"x"}{"answer":"y"}`, CodeOutputNotJSON},
				{"cut off", `{"answer":"x`, CodeOutputNotJSON},
				{"byte order mark", "\ufeff" + `{"answer":"x"}`, CodeOutputNotJSON},
				{"one key twice", `{"answer":"x","answer":"x"}`, CodeOutputNotJSON},
				{"invalid UTF-8", "{\"answer\":\"\xff\"}", CodeOutputNotJSON},
				{"lone surrogate", `{"answer":"\ud800"}`, CodeOutputNotJSON},
				{"wrong type", `{"answer":1}`, CodeOutputInvalid},
				{"missing key", `{}`, CodeOutputInvalid},
				{"undeclared key", `{"answer":"x","extra":1}`, CodeOutputInvalid},
				{"undeclared key inside", `{"answer":"x","inner":{"y":1}}`, CodeOutputInvalid},
			} {
				j := b.create(t, "single")
				a := b.last(t, j.ID)
				b.running(t, a)
				v := b.settle(t, a, Outcome{Output: json.RawMessage(tc.output), Usage: Usage{OutputTokens: new(1)}})
				require.True(t, v.Landed, tc.name)
				require.Equal(t, attempt.StateFAILED, v.Attempt.State, tc.name)
				require.Equal(t, tc.code, *v.Attempt.ErrorCode, tc.name)
				require.False(t, *v.Attempt.ErrorRetryable, tc.name)
				require.Equal(t, job.StateFAILED, v.Job.State, tc.name)
				require.Nil(t, v.Job.Result, tc.name)
				require.Equal(t, 1, *v.Attempt.OutputTokens, tc.name)
			}
		})
	})

	t.Run("BoundsWhatAnErrorSays", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "single")
			a := b.last(t, j.ID)
			b.running(t, a)
			long := strings.Repeat("ä", 1<<16)
			v := b.settle(t, a, Outcome{Output: json.RawMessage(`{"answer":"x","` + long + `":1}`)})
			require.Equal(t, CodeOutputInvalid, *v.Attempt.ErrorCode)
			require.LessOrEqual(t, len(*v.Attempt.ErrorMessage), maxMessage)
			_, a = b.unknown(t, "single")
			v = b.settle(t, a, Outcome{Failure: &Failure{Code: "X", Message: "a\x00b\xff" + long}})
			require.True(t, v.Landed, "what PostgreSQL cannot keep as text must not leave the attempt open")
			require.LessOrEqual(t, len(*v.Attempt.ErrorMessage), maxMessage)
		})
	})

	t.Run("RefusesAnAttemptThatIsNotThere", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, err := b.Settle(t.Context(), "att_nobody", answer("a"))
			require.Error(t, err)
		})
	})
}
