package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/respjson"
	"github.com/anthropics/anthropic-sdk-go/shared"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

// message is what an answer said so far, in events or in one piece.
type message struct {
	id     string
	blocks []block
	stop   sdk.StopReason
	usage  counts
}

// block is one content block.
type block struct {
	kind  string // text, tool_use, thinking and others
	name  string // of the tool
	text  []byte // of the answer: a text's, or the JSON of a tool's input
	input string // of a tool: the JSON that it began with
	open  bool
}

// answer is what the block says. A tool's input that came in no pieces is the one that the block began with: {} is told so.
func (b block) answer() []byte {
	if b.kind == "tool_use" && len(b.text) == 0 {
		return []byte(b.input)
	}
	return b.text
}

// outcome is how the message ended. With tool the answer is the input of the one tool that was offered, else all text.
func (m message) outcome(tool bool) providers.Outcome {
	out := providers.Outcome{ProviderRequestID: m.id, Usage: m.usage.billed(), FinishReason: string(m.stop)}
	fail := func(code, message string) providers.Outcome {
		out.Kind, out.Failure = providers.Failed, &providers.Failure{Code: code, Message: message}
		return out
	}
	switch m.stop {
	case sdk.StopReasonEndTurn, sdk.StopReasonToolUse:
	case sdk.StopReasonMaxTokens:
		return fail(providers.CodeTruncated, "the output was cut at the token limit")
	case sdk.StopReasonModelContextWindowExceeded:
		return fail(providers.CodeTruncated, "the output was cut where the model's context window ends")
	case sdk.StopReasonRefusal:
		return fail(providers.CodeRefused, "the model refused")
	case "":
		return fail(providers.CodeMalformedAnswer, "the provider answered with a message that does not say why it ended")
	default:
		// pause_turn, which only server tools lead to, and stop_sequence, which only the request's own sequences do: none
		// were asked for. Reasons that are not known yet may mean anything.
		return fail(providers.CodeProviderError, "the provider broke the output off")
	}
	var output []byte
	uses := 0
	for _, b := range m.blocks {
		switch b.kind {
		case "text":
			if !tool {
				output = append(output, b.answer()...)
			}
		case "tool_use":
			if !tool || b.name != toolName {
				return fail(providers.CodeRefused, "the model asked for a tool instead of answering")
			}
			uses++
			output = b.answer()
		default: // thinking, and what was not asked for
		}
	}
	switch {
	case uses > 1:
		return fail(providers.CodeMalformedAnswer, "the provider answered with several answers")
	case !tool && m.stop == sdk.StopReasonToolUse:
		return fail(providers.CodeRefused, "the model asked for a tool instead of answering")
	case tool && uses == 0:
		return fail(providers.CodeRefused, "the model did not use the tool that the answer goes to")
	case len(bytes.TrimSpace(output)) == 0:
		return fail(providers.CodeRefused, "the model answered with nothing")
	}
	out.Kind, out.Output = providers.Completed, output
	return out
}

// counts are the tokens of a message, nil where they were not told.
type counts struct{ input, cacheWrites, cacheReads, output *int64 }

// take overwrites a count that is told. One beyond all bounds stays so, and takes the sum that it is a part of with it.
func take(into **int64, f respjson.Field, n int64) {
	if f.Valid() && !strings.HasPrefix(f.Raw(), `"`) && n >= 0 {
		n = min(n, providers.MaxTokens+1)
		*into = &n
	}
}

// start takes what message_start tells. Its output_tokens is not what is billed, but a beginning.
func (c *counts) start(u sdk.Usage) {
	take(&c.input, u.JSON.InputTokens, u.InputTokens)
	take(&c.cacheWrites, u.JSON.CacheCreationInputTokens, u.CacheCreationInputTokens)
	take(&c.cacheReads, u.JSON.CacheReadInputTokens, u.CacheReadInputTokens)
}

// delta takes what message_delta tells, which is cumulative.
func (c *counts) delta(u sdk.MessageDeltaUsage) {
	take(&c.input, u.JSON.InputTokens, u.InputTokens)
	take(&c.cacheWrites, u.JSON.CacheCreationInputTokens, u.CacheCreationInputTokens)
	take(&c.cacheReads, u.JSON.CacheReadInputTokens, u.CacheReadInputTokens)
	take(&c.output, u.JSON.OutputTokens, u.OutputTokens)
}

// billed is the usage. Anthropic's input_tokens leaves out what went through the cache; all three are billed as input, at
// different prices (Message.Usage in the SDK: "Total input tokens in a request is the summation"). What was read from the cache is
// the cached part; what was written to it is not.
func (c *counts) billed() *providers.Usage {
	if c.input == nil && c.output == nil {
		return nil
	}
	u := &providers.Usage{}
	if c.output != nil {
		u.OutputTokens = providers.Tokens(*c.output)
	}
	if c.cacheReads != nil {
		u.CachedInputTokens = providers.Tokens(*c.cacheReads)
	}
	if c.input != nil {
		n := *c.input
		for _, cached := range []*int64{c.cacheWrites, c.cacheReads} {
			if cached != nil {
				n += *cached
			}
		}
		u.InputTokens = providers.Tokens(n)
	}
	return u
}

// text says whether the field is a JSON string: the SDK makes text of numbers too.
func text(f respjson.Field) bool { return strings.HasPrefix(f.Raw(), `"`) }

// readErrorBody reads Anthropic's own error, {"type": "error", "error": {"type": …, "message": …}}. Errors without the outer type
// are those of boxes in the middle.
func readErrorBody(body []byte) (exchange.ErrorBody, bool) {
	var e shared.ErrorResponse
	if json.Unmarshal(bytes.TrimSpace(body), &e) != nil || e.JSON.Type.Raw() != `"error"` || !text(e.Error.JSON.Type) {
		return exchange.ErrorBody{}, false
	}
	out := exchange.ErrorBody{Type: e.Error.Type, Message: e.Error.Message}
	if strings.Contains(strings.ToLower(out.Message), "content filtering policy") {
		out.Code = "content_filter" // told as an invalid_request_error that says so in words only
	}
	return out, true
}
