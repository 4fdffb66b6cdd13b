package contracts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/tokenizer"
)

// Codes of the check prompt.
const (
	CodePromptNotRendered  = "PROMPT_NOT_RENDERED"
	CodeTokensNotCounted   = "TOKENS_NOT_COUNTED"   // the provider's tokenizer could not be asked
	CodeRoundTripRequired  = "ROUND_TRIP_REQUIRED"  // contract.require_roundtrip, at a target that cannot show it
	CodeControlTokens      = "CONTROL_TOKENS"       // text of users becomes control tokens
	CodePromptChanged      = "PROMPT_CHANGED"       // it is not the golden's
	CodeTokenizerLosesText = "TOKENIZER_LOSES_TEXT" //nolint:gosec // tokens of text: decoded, they are not the text
)

// checkPrompt renders the case's prompt and takes it through the target's tokenizer. sendable is false if no request can be made
// of it.
func checkPrompt(ctx context.Context, s Suite, one Case, ep Endpoint) (prompt tasks.Prompt, checks []report.Check, sendable bool) {
	prompt, err := s.Task.Render(one.Input)
	if err != nil {
		return prompt, []report.Check{failed(report.CheckPrompt, "rendering", CodePromptNotRendered,
			[]report.Problem{{Pointer: "the prompt", Expected: "one that renders", Got: err.Error()}})}, false
	}
	window, fits := checkWindow(ctx, s.Task, prompt, ep.Target)
	checks = []report.Check{passed(report.CheckPrompt, "rendering"), window, checkPromptGolden(s, one, ep.Target.ID, prompt)}
	return prompt, append(checks, checkTokenizer(ctx, s.Task, prompt, ep.Target)...), fits
}

func checkWindow(ctx context.Context, task *tasks.Definition, prompt tasks.Prompt, t providers.Target) (c report.Check, fits bool) {
	f, err := t.CountWindow(ctx, prompt.System, prompt.User, task.MaxOutputTokens)
	if err != nil {
		return failed(report.CheckPrompt, "window", CodeTokensNotCounted, []report.Problem{{Pointer: "the prompt", Expected: "a count of its tokens", Got: err.Error()}}), false
	}
	if f != nil {
		return failed(report.CheckPrompt, "window", f.Code, []report.Problem{{Pointer: "the prompt", Expected: "one that fits beside the longest answer", Got: f.Message}}), false
	}
	if t.Model.ContextWindow == 0 {
		return report.Check{Name: report.CheckPrompt, Aspect: "window", Status: report.NotApplicable, Message: "the model's context_window is not configured"}, true
	}
	return passed(report.CheckPrompt, "window"), true
}

func checkPromptGolden(s Suite, one Case, target string, prompt tasks.Prompt) report.Check {
	if s.own != s.Task.Digest {
		return report.Check{Name: report.CheckPrompt, Aspect: "golden", Status: report.NotApplicable, Message: "the goldens are of another version of the task"}
	}
	t := one.Goldens.Targets[target]
	if t == nil || t.Prompt == nil {
		return failed(report.CheckPrompt, "golden", CodeGoldenMissing, []report.Problem{{
			Pointer: "the prompt", Expected: "a golden, which docket contracts run --update writes", Got: "no file " + PromptGoldenFile(one.Name, target),
		}})
	}
	line, want, got, differs := firstDifference(*t.Prompt, RenderedPrompt(prompt))
	if differs {
		return failed(report.CheckPrompt, "golden", CodePromptChanged, []report.Problem{{
			Pointer: "the prompt", Expected: quote(want), Got: fmt.Sprintf("%s in line %d", quote(got), line),
		}})
	}
	return passed(report.CheckPrompt, "golden")
}

// firstDifference is the first line that two texts do not share.
func firstDifference(want, got string) (line int, w, g string, differs bool) {
	if want == got {
		return 0, "", "", false
	}
	a, b := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return i + 1, "", b[i], true
		case i >= len(b):
			return i + 1, a[i], "", true
		case a[i] != b[i]:
			return i + 1, a[i], b[i], true
		}
	}
	return 0, "", "", false
}

// checkTokenizer asks whether the provider's tokenizer gives the text back as it was, and makes no control tokens of it.
func checkTokenizer(ctx context.Context, task *tasks.Definition, prompt tasks.Prompt, t providers.Target) []report.Check {
	codec, ok := t.Tokenizer.(tokenizer.Codec)
	if !ok {
		why := "no tokenizer is configured for the model"
		if t.Tokenizer != nil {
			why = "the provider counts tokens and does not show them"
		}
		c := report.Check{Name: report.CheckPrompt, Aspect: "round_trip", Status: report.NotApplicable, Message: why}
		if task.Contract.RequireRoundtrip {
			c.Status, c.Code = report.Failed, CodeRoundTripRequired
			c.Message = "expected: a tokenizer that shows its tokens, since contract.require_roundtrip is set; came: " + why
		}
		controls := c
		controls.Aspect = "controls"
		return []report.Check{c, controls}
	}
	roundTrip := passed(report.CheckPrompt, "round_trip")
	if problems, err := tokenRoundTrip(ctx, codec, prompt); err != nil {
		roundTrip = failed(report.CheckPrompt, "round_trip", CodeTokensNotCounted, []report.Problem{{Pointer: "the prompt", Expected: "its tokens", Got: err.Error()}})
	} else if len(problems) > 0 {
		roundTrip = failed(report.CheckPrompt, "round_trip", CodeTokenizerLosesText, problems)
	}
	controls := passed(report.CheckPrompt, "controls")
	switch taken, err := tokenizer.Controls(ctx, codec); {
	case err != nil:
		controls = failed(report.CheckPrompt, "controls", CodeTokensNotCounted, []report.Problem{{Pointer: "the tokenizer", Expected: "the tokens of control texts", Got: err.Error()}})
	case len(taken) > 0:
		controls = failed(report.CheckPrompt, "controls", CodeControlTokens, []report.Problem{{
			Pointer: "the tokenizer", Expected: "text that stays text", Got: "control tokens made of " + strings.Join(taken, " "),
		}})
	}
	return []report.Check{roundTrip, controls}
}

func tokenRoundTrip(ctx context.Context, codec tokenizer.Codec, prompt tasks.Prompt) ([]report.Problem, error) {
	var problems []report.Problem
	for _, part := range []struct{ name, text string }{{"system", prompt.System}, {"user", prompt.User}} {
		tokens, err := codec.Encode(ctx, part.text)
		if err != nil {
			return nil, err //nolint:wrapcheck // says which tokenizer it was
		}
		if len(tokens) == 0 && part.text != "" {
			return nil, errors.New("no tokens for a text")
		}
		back, err := codec.Decode(ctx, tokens)
		if err != nil {
			return nil, err //nolint:wrapcheck // says which tokenizer it was
		}
		if line, want, got, differs := firstDifference(part.text, back); differs {
			problems = append(problems, report.Problem{Pointer: "the " + part.name + " prompt", Expected: quote(want), Got: fmt.Sprintf("%s in line %d", quote(got), line)})
		}
	}
	return problems, nil
}
