package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/docket-gateway/docket/providers"
)

var _ providers.WireFaulter = (*Provider)(nil)

// WireFaults implements providers.WireFaulter. Events are the SDK's (message.go of github.com/anthropics/anthropic-sdk-go v1.84.0):
// MessageStartEvent, ContentBlockStartEvent, ContentBlockDeltaEvent, ContentBlockStopEvent, MessageDeltaEvent and MessageStopEvent;
// errors are shared.ErrorResponse, with the types of https://platform.claude.com/docs/en/api/errors. Too many requests bring a
// Retry-After (https://platform.claude.com/docs/en/api/rate-limits). The filter of outputs breaks a stream off with an error.
func (p *Provider) WireFaults(model string) providers.WireFaults {
	e := messageEvents{model: model, tool: p.models[model].StructuredOutput == StructuredTool}
	started, begun := e.started(), e.started()+e.block()+e.piece()
	return providers.WireFaults{
		RateLimit: providers.WireError(429, wireError("rate_limit_error", "This request would exceed your account's rate limit.")).Waiting(),
		Overload:  providers.WireError(529, wireError("overloaded_error", "Overloaded")),
		Refusal: providers.WireStream(started, e.text("I cannot help with that."), e.stop(),
			e.ended("refusal")),
		Truncation: providers.WireStream(begun, e.stop(), e.ended("max_tokens")),
		Filter:     providers.WireStream(begun, "event: error\ndata: "+wireError("invalid_request_error", "Output blocked by content filtering policy")+"\n\n"),
		Damaged: providers.WireStream(begun, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"del\n\n",
			e.stop(), e.ended(e.goodEnd())),
		Begun: providers.WireStream(begun),
	}
}

func wireError(kind, words string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_fault"}`, kind, words)
}

// messageEvents are those of one message, whose answer is a text or the input of the forced tool.
type messageEvents struct {
	model string
	tool  bool
}

func (e messageEvents) event(kind, fields string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fields)
}

func (e messageEvents) started() string {
	model, _ := json.Marshal(e.model) //nolint:errchkjson // a string always marshals
	return e.event("message_start", fmt.Sprintf(`,"message":{"id":"msg_fault","type":"message","role":"assistant","model":%s,"content":[],`+
		`"container":null,"diagnostics":null,"stop_details":null,"stop_reason":null,"stop_sequence":null,`+
		`"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1,`+
		`"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"inference_geo":"us",`+
		`"output_tokens_details":{"thinking_tokens":0},"server_tool_use":null,"service_tier":"standard","speed":"standard"}}`, model)) + e.event("ping", "")
}

func (e messageEvents) block() string {
	if e.tool {
		return e.event("content_block_start", fmt.Sprintf(`,"index":0,"content_block":{"type":"tool_use","id":"toolu_fault","caller":{"type":"direct"},"name":%q,"input":{}}`, toolName))
	}
	return e.event("content_block_start", `,"index":0,"content_block":{"type":"text","text":"","citations":null}`)
}

func (e messageEvents) piece() string {
	if e.tool {
		return e.event("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":"{"}`)
	}
	return e.event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"{"}`)
}

// text is a block of words, which a model that refuses writes in either way of answering.
func (e messageEvents) text(words string) string {
	return e.event("content_block_start", `,"index":0,"content_block":{"type":"text","text":"","citations":null}`) +
		e.event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%q}`, words))
}

func (e messageEvents) stop() string { return e.event("content_block_stop", `,"index":0`) }

func (e messageEvents) ended(reason string) string {
	return e.event("message_delta", fmt.Sprintf(`,"delta":{"container":null,"stop_details":null,"stop_reason":%q,"stop_sequence":null},`+
		`"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1,`+
		`"output_tokens_details":{"thinking_tokens":0},"server_tool_use":null}`, reason)) +
		e.event("message_stop", "")
}

func (e messageEvents) goodEnd() string {
	if e.tool {
		return "tool_use"
	}
	return "end_turn"
}
