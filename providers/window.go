package providers

import (
	"context"
	"fmt"

	"github.com/docket-gateway/docket/providers/tokenizer"
	"github.com/docket-gateway/docket/providers/tokenizer/tiktoken"
)

// OutputBudget is the longest answer, in tokens, that a request to the model asks for: what the task asks for, and never
// more than the model can give, which a provider would refuse. An answer that is cut there has failed either way.
func (m Model) OutputBudget(asked int) int {
	if m.MaxOutputTokens > 0 {
		return min(asked, m.MaxOutputTokens)
	}
	return asked
}

// CheckWindow refuses a prompt that does not fit the model's context window beside the output budget, with
// CodePromptTooLong. It sends nothing, so it may stand before every attempt. maxOutput is what the task asks for.
//
// A prompt is only refused if it surely does not fit. With an embedded encoding it is counted, unless its length in bytes
// shows already that it fits: no token is less than a byte. Without one, that no token has more than 256 bytes is all that is
// known, so the provider may have to say no itself. An unknown window fits all.
func (t Target) CheckWindow(system, prompt string, maxOutput int) *Failure {
	var count func(tokenizer.Prompt) (int, error)
	if local, ok := t.Tokenizer.(tokenizer.Local); ok {
		count = local.CountHere
	}
	f, err := t.checkWindow(tokenizer.Prompt{System: system, User: prompt}, maxOutput, count)
	if err != nil {
		return nil //nolint:nilerr // not reachable: an embedded encoding counts everything
	}
	return f
}

// CountWindow is CheckWindow that may ask the provider's counting endpoint, for a contract run. An error means that it could not be
// asked.
func (t Target) CountWindow(ctx context.Context, system, prompt string, maxOutput int) (*Failure, error) {
	var count func(tokenizer.Prompt) (int, error)
	if t.Tokenizer != nil {
		count = func(p tokenizer.Prompt) (int, error) { return t.Tokenizer.Count(ctx, p) }
	}
	return t.checkWindow(tokenizer.Prompt{System: system, User: prompt}, maxOutput, count)
}

// checkWindow does without a count if count is nil.
func (t Target) checkWindow(p tokenizer.Prompt, maxOutput int, count func(tokenizer.Prompt) (int, error)) (*Failure, error) {
	window, output := t.Model.ContextWindow, t.Model.OutputBudget(maxOutput)
	if window == 0 || p.Bytes()+tokenizer.ChatTokens+output <= window {
		return nil, nil //nolint:nilnil // nothing is wrong
	}
	tokens, atLeast := (p.Bytes()+tiktoken.MaxTokenBytes-1)/tiktoken.MaxTokenBytes, "at least "
	if count != nil && tokens+output <= window {
		n, err := count(p)
		if err != nil {
			return nil, err //nolint:wrapcheck // says which tokenizer it was
		}
		tokens, atLeast = n, ""
	}
	if tokens+output <= window {
		return nil, nil //nolint:nilnil // nothing is wrong
	}
	return &Failure{Code: CodePromptTooLong, Message: fmt.Sprintf(
		"the prompt has %s%d tokens and the answer may have %d, together %d; the model's context window has %d",
		atLeast, tokens, output, tokens+output, window)}, nil
}
