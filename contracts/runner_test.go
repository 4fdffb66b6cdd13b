package contracts_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
)

func TestRunner(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC) }

	run := func(t *testing.T, sender *fakeSender, runs int) report.Result {
		t.Helper()
		res, err := contracts.NewRunner(fakeTargets{sender: sender}, "tester", now).Run(t.Context(), suite(t, nil), "a/b", report.Live, runs)
		require.NoError(t, err)
		return res
	}

	t.Run("PassesAndSaysForWhat", func(t *testing.T) {
		t.Parallel()
		s := suite(t, nil)
		res := run(t, always(`{"echo": "x", "inner": {"n": 1}}`), 0)
		require.True(t, res.Passed)
		require.Empty(t, res.Failures())
		require.Equal(t, report.Basis{
			TaskVersion: s.Task.Digest, CasesDigest: s.CasesDigest, ConfigDigest: "sha256:config", ChecksVersion: report.ChecksVersion,
		}, res.Basis)
		require.Equal(t, res.Basis.Digest("a/b"), res.Digest)
		require.NotEqual(t, res.Basis.Digest("c/d"), res.Digest)
		require.Equal(t, 1, res.Runs)
		require.Equal(t, "tester", res.RanBy)
		require.Len(t, res.Cases, 2)
	})

	t.Run("SendsNothingThatDoesNotFitTheWindow", func(t *testing.T) {
		t.Parallel()
		sender := always(`{"echo": "x"}`)
		small := fakeTargets{sender: sender, limits: providers.Model{ContextWindow: 9}}
		res, err := contracts.NewRunner(small, "tester", now).Run(t.Context(), suite(t, nil), "a/b", report.Live, 1)
		require.NoError(t, err)
		require.False(t, res.Passed)
		require.Empty(t, sender.requests)
		check := res.Cases[0].Runs[0].Checks[0]
		require.Equal(t, providers.CodePromptTooLong, check.Code)
		require.Contains(t, check.Message, "context window has 9")
	})

	t.Run("AsksForNoMoreThanTheModelCanGive", func(t *testing.T) {
		t.Parallel()
		sender := always(`{"echo": "x"}`)
		_, err := contracts.NewRunner(fakeTargets{sender: sender, limits: providers.Model{MaxOutputTokens: 4}}, "tester", now).
			Run(t.Context(), suite(t, nil), "a/b", report.Live, 1)
		require.NoError(t, err)
		require.Equal(t, 4, sender.requests[0].MaxOutputTokens)
	})

	t.Run("SendsOneRequestPerRun", func(t *testing.T) {
		t.Parallel()
		sender := always(`{"echo": "x"}`)
		res := run(t, sender, 3)
		require.Len(t, sender.requests, 6)
		require.Len(t, res.Cases[0].Runs, 3)
		ids, prompts := map[string]bool{}, map[string]int{}
		for _, r := range sender.requests {
			ids[r.AttemptID] = true
			prompts[r.Prompt]++
			require.Equal(t, "echo", r.Task)
			require.Equal(t, "model-of-a/b", r.Model)
			require.Equal(t, "Obey.", r.System)
			require.InDelta(t, 0.5, r.Temperature, 0)
			require.Equal(t, 9, r.MaxOutputTokens)
			require.JSONEq(t, string(suite(t, nil).Task.OutputSchemaJSON), string(r.Schema))
		}
		require.Len(t, ids, 6)
		require.Equal(t, map[string]int{"Echo eins": 3, "Echo zwei": 3}, prompts)
	})

	t.Run("RefusesOutputs", func(t *testing.T) {
		t.Parallel()
		for _, tc := range []struct{ name, output, code, pointer, got string }{
			{"undeclared key at the top", `{"echo": "x", "sure": true}`, contracts.CodeOutputInvalid, "/sure", "a boolean"},
			{"undeclared key below", `{"echo": "x", "inner": {"m": 1}}`, contracts.CodeOutputInvalid, "/inner/m", "a number"},
			{"wrong type", `{"echo": 12}`, contracts.CodeOutputInvalid, "/echo", "a number"},
			{"null", `{"echo": null}`, contracts.CodeOutputInvalid, "/echo", "null"},
			{"missing key", `{}`, contracts.CodeOutputInvalid, "", "an object with 0 keys"},
			{"fences", "```json\n{\"echo\": \"x\"}\n```", providers.CodeNotJSON, "", "25 bytes that are not JSON"},
			{"preamble", `Sure! {"echo": "x"}`, providers.CodeNotJSON, "", "bytes that are not JSON"},
			{"two answers", `{"echo": "x"} {"echo": "y"}`, providers.CodeNotJSON, "", "JSON with something after it"},
			{"nothing", ` `, providers.CodeNotJSON, "", "nothing"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				res := run(t, always(tc.output), 1)
				require.False(t, res.Passed)
				failures := res.Failures()
				require.Len(t, failures, 2)
				require.Equal(t, "one", failures[0].Case)
				require.Equal(t, 1, failures[0].Run)
				check := failures[0].Check
				require.Equal(t, report.CheckSchema, check.Name)
				require.Equal(t, tc.code, check.Code)
				require.Equal(t, tc.pointer, check.Problems[0].Pointer)
				require.NotEmpty(t, check.Problems[0].Expected)
				require.Contains(t, check.Message, tc.got)
			})
		}
	})

	t.Run("OneBadRunOfManyFails", func(t *testing.T) {
		t.Parallel()
		sender := always("")
		calls := make(chan int, 100)
		for i := range 100 {
			calls <- i
		}
		sender.answer = func(context.Context, providers.Request, providers.Reporter) providers.Outcome {
			if <-calls == 7 {
				return providers.Outcome{Kind: providers.Completed, Output: []byte(`{}`)}
			}
			return providers.Outcome{Kind: providers.Completed, Output: []byte(`{"echo": "x"}`)}
		}
		res := run(t, sender, 5)
		require.False(t, res.Passed)
		require.Len(t, res.Failures(), 1)
	})

	t.Run("ReportsAFailedRequestByItsCode", func(t *testing.T) {
		t.Parallel()
		sender := &fakeSender{answer: func(context.Context, providers.Request, providers.Reporter) providers.Outcome {
			return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{Code: providers.CodeJammed, Message: "paper jam"}}
		}}
		res := run(t, sender, 1)
		require.False(t, res.Passed)
		require.Equal(t, `case "one", run 1, check schema: JAMMED: expected: a complete answer; came: paper jam`, res.Failures()[0].String())
	})

	t.Run("DoesNotWaitForLateAnswersAndDoesNotCountThem", func(t *testing.T) {
		t.Parallel()
		sender := &fakeSender{answer: func(ctx context.Context, _ providers.Request, r providers.Reporter) providers.Outcome {
			r.Acknowledged(providers.Acknowledgement{})
			r.Unknown(providers.Failure{Code: providers.CodeIdleTimeout, Message: "silence"})
			<-ctx.Done() // lingers for ever, unless told to stop
			return providers.Outcome{Kind: providers.Completed, Output: []byte(`{"echo": "late"}`)}
		}}
		res := run(t, sender, 1)
		require.False(t, res.Passed)
		require.Equal(t, providers.CodeIdleTimeout, res.Failures()[0].Check.Code)
	})

	t.Run("FailsAnOutcomeWithoutAReason", func(t *testing.T) {
		t.Parallel()
		sender := &fakeSender{answer: func(context.Context, providers.Request, providers.Reporter) providers.Outcome {
			return providers.Outcome{}
		}}
		require.Equal(t, "UNCLASSIFIED", run(t, sender, 1).Failures()[0].Check.Code)
	})

	t.Run("FailsAPromptThatDoesNotRender", func(t *testing.T) {
		t.Parallel()
		sender := always(`{"echo": "x"}`)
		s := suite(t, map[string]string{"echo/prompt.tmpl": "{{.Input.missing}}"})
		res, err := contracts.NewRunner(fakeTargets{sender: sender}, "tester", now).Run(t.Context(), s, "a/b", report.Live, 1)
		require.NoError(t, err)
		require.False(t, res.Passed)
		require.Equal(t, contracts.CodePromptNotRendered, res.Failures()[0].Check.Code)
		require.Empty(t, sender.requests)
	})

	t.Run("KeepsReportsReadable", func(t *testing.T) {
		t.Parallel()
		var keys []string
		for i := range 500 {
			keys = append(keys, `"`+strings.Repeat("k", 3000)+strings.Repeat("x", i)+`": 1`)
		}
		check := run(t, always(`{"echo": "x", `+strings.Join(keys, ",")+`}`), 1).Failures()[0].Check
		require.LessOrEqual(t, len(check.Problems), 20)
		require.Less(t, len(check.Message), 20_000)
	})

	t.Run("CannotRun", func(t *testing.T) {
		t.Parallel()
		s := suite(t, nil)
		sender := always(`{"echo": "x"}`)
		runner := contracts.NewRunner(fakeTargets{sender: sender}, "tester", now)
		_, err := runner.Run(t.Context(), s, "nobody/there", report.Live, 1)
		require.ErrorIs(t, err, contracts.ErrUnknownTarget)
		_, err = runner.Run(t.Context(), s, "a/b", report.Replay, 1)
		require.ErrorIs(t, err, contracts.ErrMode)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = runner.Run(ctx, s, "a/b", report.Live, 1)
		require.ErrorIs(t, err, contracts.ErrInterrupted)
		require.Empty(t, sender.requests)
	})
}
