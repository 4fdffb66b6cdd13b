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
// CodePromptTooLong. It sends nothing. maxOutput is what the task asks for.
//
// A prompt is only refused if it surely does not fit. With an embedded encoding it is counted exactly, unless its length in
// bytes shows already that it fits: no token is less than a byte. Without one, that no token has more than 256 bytes is all
// that is known, so the provider may have to say no itself. An unknown window fits all.
func (t Target) CheckWindow(system, prompt string, maxOutput int) *Failure {
	p := tokenizer.Prompt{System: system, User: prompt}
	window, output := t.Model.ContextWindow, t.Model.OutputBudget(maxOutput)
	if window == 0 || p.Bytes()+tokenizer.ChatTokens+output <= window {
		return nil
	}
	tokens, atLeast := (p.Bytes()+tiktoken.MaxTokenBytes-1)/tiktoken.MaxTokenBytes, "at least "
	if local, ok := t.Tokenizer.(tokenizer.Local); ok && tokens+output <= window {
		n, err := local.Count(context.Background(), p)
		if err == nil {
			tokens, atLeast = n, ""
		}
	}
	if tokens+output <= window {
		return nil
	}
	return &Failure{Code: CodePromptTooLong, Message: fmt.Sprintf(
		"the prompt has %s%d tokens and the answer may have %d, together %d; the model's context window has %d",
		atLeast, tokens, output, tokens+output, window)}
}
