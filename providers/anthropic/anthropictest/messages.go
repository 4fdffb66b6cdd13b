package anthropictest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/docket-gateway/docket/providers/providertest"
)

// Messages is the protocol of the Messages API. A request that is not scripted is answered well: by text, or by the tool that
// the request forces.
func Messages() providertest.Protocol {
	return providertest.Protocol{
		Serves: func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/v1/messages")
		},
		Model:     func(_ *http.Request, body []byte) string { return read(body).Model },
		Check:     check,
		RequestID: "Request-Id",
		Default:   func(string) providertest.Behaviour { return OK() },
	}
}

// object is a JSON object in the making.
type object = map[string]any

// stream is one message on its way.
type stream struct {
	x     *providertest.Exchange
	req   request
	index int // of the next content block
}

// InputTokens is how many tokens each request is counted with: 4 as they are, 3 written to the cache, the rest read from it.
const InputTokens = 4 + 3 + providertest.CachedTokens

// open begins a stream: message_start (MessageStartEvent) and ping.
func open(x *providertest.Exchange) *stream {
	s := &stream{x: x, req: read(x.Entry.Body)}
	x.Headers()
	s.event("message_start", object{"message": message(x, s.req, nil, nil, 1)})
	s.event("ping", object{})
	return s
}

// event sends an event as the API does: its type is its name too.
func (s *stream) event(kind string, fields object) {
	fields["type"] = kind
	s.x.Write("event: " + kind + "\ndata: " + encode(fields) + "\n\n")
}

// message is the SDK's Message, with its Usage.
func message(x *providertest.Exchange, req request, content []any, stop any, outputTokens int) object {
	if content == nil {
		content = []any{}
	}
	return object{
		"id": fmt.Sprintf("msg_fake_%d", x.Entry.Number), "type": "message", "role": "assistant", "model": req.Model,
		"content": content, "container": nil, "diagnostics": nil, "stop_details": nil, "stop_reason": stop, "stop_sequence": nil,
		"usage": object{
			"input_tokens": 4, "cache_creation_input_tokens": 3, "cache_read_input_tokens": providertest.CachedTokens, "output_tokens": outputTokens,
			"cache_creation": object{"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0}, "inference_geo": "us",
			"output_tokens_details": object{"thinking_tokens": 0}, "server_tool_use": nil, "service_tier": "standard", "speed": "standard",
		},
	}
}

// textBlock is the SDK's TextBlock.
func textBlock(text string) object { return object{"type": "text", "text": text, "citations": nil} }

// toolUse is the SDK's ToolUseBlock.
func toolUse(name string, input any) object {
	return object{"type": "tool_use", "id": "toolu_fake", "caller": object{"type": "direct"}, "name": name, "input": input}
}

// begin starts a content block: ContentBlockStartEvent.
func (s *stream) begin(block object) {
	s.event("content_block_start", object{"index": s.index, "content_block": block})
}

// piece sends a piece of the answer to the block that began last: ContentBlockDeltaEvent with a TextDelta, or with an InputJSONDelta
// where a tool is forced.
func (s *stream) piece(text string) {
	delta := object{"type": "text_delta", "text": text}
	if s.req.tool() != "" {
		delta = object{"type": "input_json_delta", "partial_json": text}
	}
	s.event("content_block_delta", object{"index": s.index, "delta": delta})
}

// finish ends the block: ContentBlockStopEvent.
func (s *stream) finish() {
	s.event("content_block_stop", object{"index": s.index})
	s.index++
}

// start begins the block that the answer goes to.
func (s *stream) start() {
	if name := s.req.tool(); name != "" {
		s.begin(toolUse(name, object{}))
		s.piece("") // as the API does
		return
	}
	s.begin(textBlock(""))
}

// end sends MessageDeltaEvent, with its MessageDeltaUsage, and MessageStopEvent.
func (s *stream) end(stop, output string, details any) {
	s.event("message_delta", object{
		"delta": object{"container": nil, "stop_details": details, "stop_reason": stop, "stop_sequence": nil},
		"usage": object{
			"input_tokens": 4, "cache_creation_input_tokens": 3, "cache_read_input_tokens": providertest.CachedTokens, "output_tokens": providertest.Tokens(output),
			"output_tokens_details": object{"thinking_tokens": 0}, "server_tool_use": nil,
		},
	})
	s.event("message_stop", object{})
}

// stopReason is why a good answer ends.
func (s *stream) stopReason() string {
	if s.req.tool() != "" {
		return "tool_use"
	}
	return "end_turn"
}

// OK streams a good answer.
func OK() providertest.Behaviour {
	return func(x *providertest.Exchange) { Says(read(x.Entry.Body).output())(x) }
}

// Says streams the given output. Where it is empty there is no content block.
func Says(output string) providertest.Behaviour { return ends(output, "") }

// Ends streams the given output and ends for the reason.
func Ends(output, stop string) providertest.Behaviour { return ends(output, stop) }

func ends(output, stop string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		if output != "" {
			s.start()
			for _, p := range providertest.Pieces(output, 3) {
				s.piece(p)
			}
			s.finish()
		}
		reason := stop // one behaviour answers many requests
		switch {
		case reason != "":
		case output == "":
			reason = "end_turn"
		default:
			reason = s.stopReason()
		}
		s.end(reason, output, nil)
	}
}

// Thinks streams a thinking block (ThinkingBlock, ThinkingDelta, SignatureDelta) and then the given output.
func Thinks(output string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.begin(object{"type": "thinking", "thinking": "", "signature": ""})
		s.event("content_block_delta", object{"index": s.index, "delta": object{"type": "thinking_delta", "thinking": "hm"}})
		s.event("content_block_delta", object{"index": s.index, "delta": object{"type": "signature_delta", "signature": "c2ln"}})
		s.finish()
		s.start()
		s.piece(output)
		s.finish()
		s.end(s.stopReason(), output, nil)
	}
}

// Starts acknowledges, streams a piece and then nothing.
func Starts() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.start()
		s.piece("{")
		x.Until(nil)
	}
}

// Cut streams a piece and ends cleanly, without message_stop.
func Cut() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.start()
		s.piece("{")
	}
}

// Damaged streams a good answer with one broken event in its middle.
func Damaged() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.start()
		s.piece("{")
		x.Write("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"del\n\n")
		s.piece("}")
		s.finish()
		s.end(s.stopReason(), "{}", nil)
	}
}

// Refuses streams a piece and ends as a refusal, with RefusalStopDetails.
func Refuses() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		const words = "I cannot help with that."
		s := open(x)
		s.begin(textBlock(""))
		s.event("content_block_delta", object{"index": s.index, "delta": object{"type": "text_delta", "text": words}})
		s.finish()
		s.end("refusal", words, object{"type": "refusal", "category": "general_harms", "explanation": words})
	}
}

// CallsTool ends with the call of a tool that nobody offered.
func CallsTool() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.begin(toolUse("look_up", object{}))
		s.event("content_block_delta", object{"index": s.index, "delta": object{"type": "input_json_delta", "partial_json": "{}"}})
		s.finish()
		s.end("tool_use", "", nil)
	}
}

// CallsTwice calls the forced tool twice.
func CallsTwice() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		for range 2 {
			s.start()
			s.piece("{}")
			s.finish()
		}
		s.end("tool_use", "{}", nil)
	}
}

// Blocks streams the given content blocks, each as it is and without pieces, and ends for the reason.
func Blocks(stop string, blocks ...map[string]any) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		for _, b := range blocks {
			s.begin(b)
			s.finish()
		}
		s.end(stop, "", nil)
	}
}

// Text and Use are content blocks for Blocks.
func Text(text string) map[string]any { return textBlock(text) }

// Use is a call of a tool.
func Use(name string, input any) map[string]any { return toolUse(name, input) }

// ErrorEvent streams a piece and then an error: an event "error" with the SDK's shared.ErrorResponse.
func ErrorEvent(kind, words string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.start()
		s.piece("{")
		x.Write("event: error\ndata: " + ErrorBody(kind, words) + "\n\n")
	}
}

// Filters streams a piece and then the error by which the API tells that its filter blocked the rest.
func Filters() providertest.Behaviour {
	return ErrorEvent("invalid_request_error", "Output blocked by content filtering policy")
}

// Whole answers with a Message in one piece, as boxes in the middle do that do not stream.
func Whole(stop string, blocks ...map[string]any) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		content := make([]any, 0, len(blocks))
		for _, b := range blocks {
			content = append(content, b)
		}
		x.Respond(http.StatusOK, "application/json", encode(message(x, read(x.Entry.Body), content, stop, 5)))
	}
}
