package contracts_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/tokenizer"
)

// specialCodec lets text become a control token.
type specialCodec struct{ bytesCodec }

func (c specialCodec) Encode(ctx context.Context, text string) ([]int, error) {
	var out []int
	for i, part := range strings.Split(text, "<|im_end|>") {
		if i > 0 {
			out = append(out, 1000)
		}
		tokens, err := c.bytesCodec.Encode(ctx, part)
		if err != nil {
			return nil, err
		}
		out = append(out, tokens...)
	}
	return out, nil
}

func (c specialCodec) Decode(ctx context.Context, tokens []int) (string, error) {
	text := ""
	for _, token := range tokens {
		if token == 1000 {
			text += "<|im_end|>"
			continue
		}
		part, err := c.bytesCodec.Decode(ctx, []int{token})
		if err != nil {
			return "", err
		}
		text += part
	}
	return text, nil
}

// lossyCodec forgets capital letters.
type lossyCodec struct{ bytesCodec }

func (c lossyCodec) Encode(ctx context.Context, text string) ([]int, error) {
	return c.bytesCodec.Encode(ctx, strings.ToLower(text))
}

// counter tells no tokens.
type counter struct{}

func (counter) Count(context.Context, tokenizer.Prompt) (int, error) { return 7, nil }

func failing(code, message string) *fakeSender {
	return model(func(int) providers.Outcome {
		return providers.Outcome{Kind: providers.Failed, Usage: usage(), Failure: &providers.Failure{Code: code, Message: message}}
	})
}

const (
	boundTime  = "name: echo\nversion: v1\ntarget: a/b\ncontract: {runs: 1, budget: {p50: 1s, p95: 900ms}}\n"
	boundCost  = "name: echo\nversion: v1\ntarget: a/b\ncontract: {runs: 1, budget: {cost: 0.0009}}\n"
	mustDecode = "name: echo\nversion: v1\ntarget: a/b\ncontract: {runs: 1, require_roundtrip: true}\n"
	four       = "name: echo\nversion: v1\ntarget: a/b\ncontract: {runs: 5, stability: 0.8}\n"
)

// brokenModel is a model that breaks one check. Nothing else may fail, and what could not be judged for it is not run.
type brokenModel struct {
	name    string
	changes map[string]string // of the task
	golden  map[string]string // of what is recorded
	rig     rig
	failed  string // the one check, or both of one kind
	code    string
	message string // whole, with % for what is another each time
	notRun  []string
}

// brokenModels has one for each way to break a contract, and the words for it.
func brokenModels() []brokenModel {
	return []brokenModel{
		// The model makes something up, or gets it wrong.
		{name: "a key that is made up", rig: rig{sender: always(`{"echo": "x", "kind": "plain", "price": 1.5, "note": "n", "inner": {"n": 1}, "sure": true}`)},
			failed: "schema", code: contracts.CodeOutputInvalid, message: `/sure: expected: The schema does not declare this key. (undeclared); came: a boolean: true`, notRun: unjudged},
		{name: "a key that is made up further down", rig: rig{sender: always(`{"echo": "x", "kind": "plain", "price": 1.5, "note": "n", "inner": {"n": 1, "m": [2]}}`)},
			failed: "schema", code: contracts.CodeOutputInvalid, message: `/inner/m: expected: The schema does not declare this key. (undeclared); came: an array of 1: [2]`, notRun: unjudged},
		{name: "a number as a string", rig: rig{sender: always(`{"echo": "x", "kind": "plain", "price": "1.5", "note": "n", "inner": {"n": 1}}`)},
			failed: "schema", code: contracts.CodeOutputInvalid, message: `/price: expected: The value must be of type number. (type); came: a string of 3 characters: "1.5"`, notRun: unjudged},
		{name: "a null", rig: rig{sender: always(`{"echo": "x", "kind": "plain", "price": 1.5, "note": null, "inner": {"n": 1}}`)},
			failed: "schema", code: contracts.CodeOutputInvalid, message: `/note: expected: The value must be of type string. (type); came: null`, notRun: unjudged},
		{name: "a word that is not in the enum", rig: rig{sender: always(`{"echo": "x", "kind": "Plain", "price": 1.5, "note": "n", "inner": {"n": 1}}`)},
			failed: "schema", code: contracts.CodeOutputInvalid, message: `/kind: expected: The value must be one of "plain", "loud". (enum); came: a string of 5 characters: "Plain"`, notRun: unjudged},
		{name: "a word that would steer a terminal", rig: rig{sender: always(`{"echo": "x", "kind": "` + "\u009b2J\u202e" + strings.Repeat("x", 500) + `", "price": 1.5, "note": "n", "inner": {"n": 1}}`)},
			failed: "schema", code: contracts.CodeOutputInvalid, message: `/kind: expected: The value must be one of "plain", "loud". (enum); came: a string of 504 characters: "` +
				`\u009b2J\u202e` + strings.Repeat("x", 115) + "…", notRun: unjudged},
		{name: "valid JSON that means something else", rig: rig{sender: always(`{"echo": "x", "kind": "loud", "price": 2.5, "note": "n", "inner": {"n": 1}}`)},
			failed: "meaning", message: `assert[0]: expected: output.kind == 'plain'; came: output.kind is "loud"; assert[1]: expected: output.price <= 2; came: output.price is 2.5`},
		{name: "a value that is not the target's own", rig: rig{sender: always(`{"echo": "y", "kind": "plain", "price": 1.5, "note": "n", "inner": {"n": 1}}`)},
			failed: "structure/values", message: `/echo: expected: "x"; came: "y"`},
		{name: "a value beyond the tolerance", rig: rig{sender: always(`{"echo": "x", "kind": "plain", "price": 1.5, "note": "n", "inner": {"n": 1.02}}`)},
			failed: "structure/values", message: `/inner/n: expected: 1 ± 0.01; came: 1.02`},

		// It is not the same each time.
		{name: "an optional key that is missing one time in five", rig: rig{options: contracts.Options{Runs: 5}, sender: forgetful()},
			failed: "structure/stability", message: `4 of 5 runs have the golden's structure, a ratio of 0.80; the task asks for 1.00: /note: expected: string; came: nothing in run %`},
		{name: "an optional key that is there one time in five", rig: rig{options: contracts.Options{Runs: 5}, sender: always(good)},
			golden: map[string]string{"echo/cases/one.golden.json": `{"structure": [{"pointer": "", "type": "object"}, {"pointer": "/echo", "type": "string"}, {"pointer": "/kind", "type": "string"},
			{"pointer": "/price", "type": "number"}, {"pointer": "/inner", "type": "object"}, {"pointer": "/inner/n", "type": "number"}], "values": {"/inner/n": 1}}`},
			failed: "structure/stability", message: `0 of 5 runs have the golden's structure, a ratio of 0.00; the task asks for 1.00: ` +
				repeat("/note: expected: nothing; came: string in run %d", 5)},
		{name: "no golden", golden: map[string]string{"echo/cases/one.golden.json": ""}, changes: map[string]string{"echo/cases/one.json": `{"input": {"text": "eins"}}`},
			failed: "structure/stability", code: contracts.CodeGoldenMissing,
			message: "the structure: expected: a golden, which docket contracts run --update writes from the task's primary; came: no file cases/one.golden.json"},
		{name: "no golden of the prompt", golden: map[string]string{"echo/cases/one.a@b.prompt.golden": ""}, failed: "prompt/golden", code: contracts.CodeGoldenMissing,
			message: "the prompt: expected: a golden, which docket contracts run --update writes; came: no file cases/one.a@b.prompt.golden"},
		{name: "no golden of the target", golden: map[string]string{"echo/cases/one.a@b.golden.json": ""},
			failed: "structure/values", code: contracts.CodeGoldenMissing, message: "/echo: expected: a golden value; came: none in cases/one.a@b.golden.json"},

		// It does not do as the system prompt says.
		{name: "an ignored system prompt", rig: rig{sender: deaf(good)}, failed: "system/canary",
			message: `the whole output: expected: {"canary":"canary-%"}, as the system prompt says; came: ` + fmt.Sprintf("%q", good)},
		{name: "a canary that is another", rig: rig{sender: deaf(`{"canary": "canary-0"}`)}, failed: "system/canary",
			message: `the whole output: expected: {"canary":"canary-%"}, as the system prompt says; came: "{\"canary\": \"canary-0\"}"`},
		{name: "a canary with more beside it", rig: rig{sender: eager()}, failed: "system/canary",
			message: `the whole output: expected: {"canary":"canary-%,\"echo\":\"x\"}"`},
		{name: "code fences", rig: rig{sender: always("```json\n" + `{"echo": "x"}` + "\n```")}, failed: "system/format", code: providers.CodeNotJSON,
			message: "the whole output: expected: one JSON text and nothing else; came: a code fence: \"```json\\n{\\\"echo\\\": \\\"x\\\"}\\n```\"", notRun: append([]string{"schema"}, unjudged...)},
		{name: "a preamble", rig: rig{sender: always("Sure! " + good)}, failed: "system/format", code: providers.CodeNotJSON,
			message: `the whole output: expected: one JSON text and nothing else; came: text before the JSON: "Sure! "`, notRun: append([]string{"schema"}, unjudged...)},
		{name: "a remark at the end", rig: rig{sender: always(good + "\nIs that fine?")}, failed: "system/format", code: providers.CodeNotJSON,
			message: `the whole output: expected: one JSON text and nothing else; came: text after the JSON: "Is that fine?"`, notRun: append([]string{"schema"}, unjudged...)},
		{name: "an answer that is cut off unseen", rig: rig{sender: always(good[:40])}, failed: "system/format", code: providers.CodeNotJSON,
			message: `the whole output: expected: one JSON text and nothing else; came: 39 bytes that are not JSON (unexpected EOF), which end in %`, notRun: append([]string{"schema"}, unjudged...)},

		// It does not answer.
		{name: "an answer cut at the token limit", rig: rig{sender: failing(providers.CodeTruncated, "cut at the token limit")}, failed: "schema", code: providers.CodeTruncated,
			message: "expected: a complete answer; came: cut at the token limit", notRun: append([]string{"system/format", "budget/latency"}, unjudged...)},
		{name: "a refusal", rig: rig{sender: failing(providers.CodeRefused, "the model refused")}, failed: "schema", code: providers.CodeRefused,
			message: "expected: a complete answer; came: the model refused", notRun: append([]string{"system/format", "budget/latency"}, unjudged...)},

		// The prompt does not reach it as it is.
		{name: "a prompt that is too long", rig: rig{limits: providers.Model{ContextWindow: 20}}, failed: "prompt/window", code: providers.CodePromptTooLong,
			message: "the prompt: expected: one that fits beside the longest answer; came: the prompt has 14 tokens and the answer may have 9, together 23; the model's context window has 20",
			notRun:  []string{"schema", "structure", "system", "meaning", "round_trip", "budget", "budget/latency"}},
		{name: "a prompt that is not the golden", golden: map[string]string{"echo/cases/one.a@b.prompt.golden": "=== system\nObey.\n=== user\nEcho zwei\n"}, failed: "prompt/golden", code: contracts.CodePromptChanged,
			message: `the prompt: expected: "Echo zwei\n"; came: "Echo eins\n" in line 4`},
		{name: "a tokenizer that loses text", rig: rig{codec: lossyCodec{}}, failed: "prompt/round_trip", code: contracts.CodeTokenizerLosesText,
			message: `the system prompt: expected: "Obey."; came: "obey." in line 1; the user prompt: expected: "Echo eins"; came: "echo eins" in line 1`},
		{name: "text that becomes a control token", rig: rig{codec: specialCodec{}}, failed: "prompt/controls", code: contracts.CodeControlTokens,
			message: "the tokenizer: expected: text that stays text; came: control tokens made of <|im_end|>"},
		{name: "tokens that nobody shows", changes: map[string]string{"echo/task.yaml": mustDecode}, rig: rig{codec: counter{}}, failed: "prompt/round_trip prompt/controls", code: contracts.CodeRoundTripRequired,
			message: "expected: a tokenizer that shows its tokens, since contract.require_roundtrip is set; came: the provider counts tokens and does not show them"},

		// It takes too much.
		{name: "too slow", changes: map[string]string{"echo/task.yaml": boundTime}, rig: rig{clock: ticking(time.Second), options: contracts.Options{Concurrency: 1}},
			failed: "budget/latency", code: contracts.CodeTooSlow, message: "latency p95: expected: at most 900ms; came: 1s"},
		{name: "too expensive", changes: map[string]string{"echo/task.yaml": boundCost}, rig: rig{limits: providers.Model{PricePerMillion: providers.Price{Input: "8", Output: "20"}}},
			failed: "budget/cost", code: contracts.CodeTooExpensive, message: "cost: expected: at most 0.0009 USD; came: 0.001 in run 1"},
		{name: "a price that nobody knows", changes: map[string]string{"echo/task.yaml": boundCost},
			failed: "budget/cost", code: contracts.CodeCostUnknown, message: "cost: expected: one that is known, since the task bounds it; came: no price or no usage in run 1"},

		// What comes back from a job is something else.
		{name: "a result that is not the answer", rig: rig{trips: fakeTrips{change: func(t *contracts.Trip) { t.Read = []byte(strings.Replace(good, "1.5", "1.50001", 1)) }}},
			failed: "round_trip", code: contracts.CodeNotTheSame, message: "/price: expected: 1.5; came: 1.50001"},
		{name: "a result that breaks the schema", rig: rig{trips: fakeTrips{change: func(t *contracts.Trip) { t.Read = []byte(`{"echo": "x", "kind": "plain", "debug": 1}`) }}},
			failed: "round_trip", code: contracts.CodeOutputInvalid, message: "/debug: expected: The schema does not declare this key.; came: a number: 1"},
		{name: "a job that is not done", rig: rig{trips: fakeTrips{change: func(t *contracts.Trip) { *t = contracts.Trip{State: "FAILED", Code: providers.CodeRefused} }}},
			failed: "round_trip", code: providers.CodeRefused, message: "the job: expected: one that is SUCCEEDED with a result; came: FAILED REFUSED"},
		{name: "a fault taken for another", rig: rig{faults: fakeFaults{checks: []report.Check{{Name: report.CheckFaults, Aspect: "rate_limit", Status: report.Failed, Code: "CLASSIFIED_WRONG", Message: "expected: RATE_LIMITED; came: REFUSED"}}}},
			failed: "faults/rate_limit", code: "CLASSIFIED_WRONG", message: "expected: RATE_LIMITED; came: REFUSED"},
	}
}

// unjudged is what cannot be said of an answer that breaks the schema.
var unjudged = []string{"meaning", "structure/stability", "structure/values"}

func repeat(format string, times int) string {
	var parts []string
	for i := range times {
		parts = append(parts, fmt.Sprintf(format, i+1))
	}
	return strings.Join(parts, "; ")
}

// forgetful leaves an optional key out one time in five.
func forgetful() *fakeSender {
	return model(func(number int) providers.Outcome {
		if number%5 == 0 {
			return completed(strings.Replace(good, `"note": "n", `, "", 1))
		}
		return completed(good)
	})
}

// deaf answers canaries with the output.
func deaf(output string) *fakeSender {
	return &fakeSender{answer: func(_ context.Context, req providers.Request, _ providers.Reporter) providers.Outcome {
		if isCanary(req) {
			return completed(output)
		}
		return completed(good)
	}}
}

// eager obeys canaries and does its work as well.
func eager() *fakeSender {
	return &fakeSender{answer: func(_ context.Context, req providers.Request, _ providers.Reporter) providers.Outcome {
		if isCanary(req) {
			return completed(strings.TrimSuffix(obeys(req), "}") + `,"echo":"x"}`)
		}
		return completed(good)
	}}
}

func ticking(step time.Duration) *clock {
	c := frozen()
	c.step = step
	return c
}

// oneCase is the task of bundle_test.go with its first case alone.
func oneCase(t *testing.T, changes, recordings map[string]string) contracts.Suite {
	t.Helper()
	fsys := recordedFiles(t, map[string]string{"echo/cases/two.json": ""}, changes)
	for name, content := range recordings {
		require.Contains(t, fsys, name)
		delete(fsys, name)
		if content != "" {
			with(t, fsys, map[string]string{name: content})
		}
	}
	return load(t, fsys)
}

func TestRefusesEveryBrokenModelForWhatItBreaks(t *testing.T) {
	t.Parallel()

	t.Run("AndPassesOneThatBreaksNothing", func(t *testing.T) {
		t.Parallel()
		res := rig{codec: bytesCodec{}}.run(t, oneCase(t, nil, nil))
		require.Empty(t, failedChecks(res))
		require.Empty(t, names(res, report.NotRun))
		require.True(t, res.Passed)
	})

	broken := map[string]bool{}
	for _, tc := range brokenModels() {
		for name := range strings.FieldsSeq(tc.failed) {
			broken[strings.Split(name, "/")[0]] = true
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.rig.codec == nil {
				tc.rig.codec = bytesCodec{}
			}
			res := tc.rig.run(t, oneCase(t, tc.changes, tc.golden))
			require.False(t, res.Passed)
			require.Equal(t, strings.Fields(tc.failed), failedChecks(res))
			require.ElementsMatch(t, tc.notRun, names(res, report.NotRun))
			check := res.Failures()[0].Check
			require.Equal(t, tc.code, check.Code)
			parts := strings.SplitN(tc.message, "%", 2)
			require.True(t, strings.HasPrefix(check.Message, parts[0]), "%s", check.Message)
			if len(parts) == 1 {
				require.Equal(t, tc.message, check.Message)
			} else {
				require.True(t, strings.HasSuffix(check.Message, parts[1]), "%s", check.Message)
			}
			require.Contains(t, check.Message, "expected: ")
			require.Contains(t, check.Message, "came: ")
		})
	}
	require.ElementsMatch(t, report.Checks(), slices.Collect(keys(broken)), "a check that nothing breaks proves nothing")

	t.Run("LessStabilityIfTheTaskAsksForLess", func(t *testing.T) {
		t.Parallel()
		res := rig{sender: forgetful()}.run(t, oneCase(t, map[string]string{"echo/task.yaml": four}, nil))
		require.Empty(t, failedChecks(res))
		require.True(t, res.Passed)
		require.Equal(t, 5, res.Runs)
	})
}

func keys(m map[string]bool) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
