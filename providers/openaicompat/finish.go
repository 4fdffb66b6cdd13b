package openaicompat

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

// answer is what has come so far.
type answer struct {
	any     bool // an event came
	damaged bool
	choice  bool
	id      string
	output  bytes.Buffer
	refusal bool
	tools   bool
	finish  string
	usage   *providers.Usage
}

// add takes a chunk's or a completion's first choice. Others are not asked for.
func (s *answer) add(c completion) {
	if c.ID != "" {
		s.id = c.ID
	}
	if u := readUsage(c.Usage); u != nil {
		s.usage = u
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue
		}
		s.choice = true
		for _, m := range []*message{ch.Delta, ch.Message} {
			if m == nil {
				continue
			}
			s.output.WriteString(m.Content)
			s.refusal = s.refusal || m.Refusal != ""
			s.tools = s.tools || len(m.ToolCalls) > 0 || len(m.FunctionCall) > 0 && string(m.FunctionCall) != "null"
		}
		// A reason other than a normal end is not taken back by one.
		if ch.FinishReason != "" && (s.finish == "" || normalEnd(s.finish)) {
			s.finish = ch.FinishReason
		}
	}
}

// with puts what is known beside the outcome: tokens are billed whatever becomes of them.
func (s *answer) with(out providers.Outcome) providers.Outcome {
	out.Usage = s.usage
	out.ProviderRequestID = s.id
	out.FinishReason = s.finish
	return out
}

// outcome is the end of an answer whose end marker was seen. whole says that it came in one piece.
func (s *answer) outcome(whole bool, limit int) providers.Outcome {
	fail := func(code, message string) providers.Outcome {
		return s.with(providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{Code: code, Message: message}})
	}
	empty := len(bytes.TrimSpace(s.output.Bytes())) == 0
	atLimit := limit > 0 && s.usage != nil && s.usage.OutputTokens != nil && *s.usage.OutputTokens >= limit
	switch {
	case s.damaged:
		return s.with(exchange.Malformed("a stream with damaged events"))
	case !s.choice:
		return s.with(exchange.Malformed("a completion without choices"))
	case s.refusal:
		return fail(providers.CodeRefused, "the model refused")
	}
	switch strings.ToLower(s.finish) {
	case "":
		if whole {
			return s.with(exchange.Malformed("a completion without a finish reason"))
		}
		return s.with(exchange.CutOff("the stream ended without a finish reason"))
	case "length", "max_tokens", "model_length":
		return fail(providers.CodeTruncated, "the output was cut at the token limit")
	case "content_filter", "safety":
		return fail(providers.CodeContentFilter, "the provider's filter cut the output")
	case "insufficient_system_resource":
		out := fail(providers.CodeOverloaded, "the provider had no capacity to finish")
		out.Failure.Retryable = true
		return out
	case "error", "abort":
		return fail(providers.CodeProviderError, "the provider broke the output off")
	case "tool_calls", "function_call":
		return fail(providers.CodeRefused, "the model asked for a tool instead of answering")
	}
	switch {
	case !normalEnd(s.finish):
		return fail(providers.CodeMalformedAnswer, "the finish reason is not known")
	// Some servers report a normal end when the limit stopped the model; with reasoning there may be no output at all. An answer
	// that is whole was not cut, even if its last token was the last one allowed.
	case atLimit && !isWhole(s.output.Bytes()):
		return fail(providers.CodeTruncated, "the output used the whole token limit")
	case empty:
		return fail(providers.CodeRefused, "the model answered with nothing")
	case s.tools:
		return fail(providers.CodeRefused, "the model asked for a tool instead of answering")
	}
	return s.with(providers.Outcome{Kind: providers.Completed, Output: bytes.Clone(s.output.Bytes())})
}

func normalEnd(finish string) bool {
	switch strings.ToLower(finish) {
	case "stop", "eos", "eos_token", "end_turn", "stop_sequence":
		return true
	}
	return false
}

// isWhole says whether nothing can be missing at the end: the output is JSON, and no number, which may have had more digits.
func isWhole(output []byte) bool {
	output = bytes.TrimSpace(output)
	return json.Valid(output) && (output[0] != '-' && (output[0] < '0' || output[0] > '9'))
}
