package openaitest

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/docket-gateway/docket/providers/providertest"
)

var responsePath = regexp.MustCompile(`/responses(/[^/]+(/cancel)?)?$`)

// Responses is the protocol of the Responses API. A request that is not scripted is answered well.
func Responses() providertest.Protocol {
	return providertest.Protocol{
		Serves: func(r *http.Request) bool {
			m := responsePath.FindStringSubmatch(r.URL.Path)
			switch {
			case m == nil:
				return false
			case m[1] == "" || m[2] != "":
				return r.Method == http.MethodPost
			default:
				return r.Method == http.MethodGet
			}
		},
		Model:   modelOf,
		Check:   checkResponses,
		Default: func(string) providertest.Behaviour { return ResponsesOK() },
	}
}

// object is a JSON object in the making.
type object = map[string]any

// stream is one response on its way.
type stream struct {
	x    *providertest.Exchange
	req  request
	id   string
	next int // sequence_number
}

func open(x *providertest.Exchange) *stream {
	s := &stream{x: x, req: read(x.Entry.Body), id: fmt.Sprintf("resp_fake_%d", x.Entry.Number)}
	x.Headers()
	s.event("response.created", object{"response": s.response("in_progress")})
	s.event("response.in_progress", object{"response": s.response("in_progress")})
	return s
}

// event sends an event as the API does: its type is its name too.
func (s *stream) event(kind string, fields object) {
	fields["type"], fields["sequence_number"] = kind, s.next
	s.next++
	s.x.Write("event: " + kind + "\ndata: " + encode(fields) + "\n\n")
}

// response is the SDK's responses.Response.
func (s *stream) response(status string, output ...any) object {
	return response(s.id, s.req, status, output...)
}

func response(id string, req request, status string, output ...any) object {
	if output == nil {
		output = []any{}
	}
	var temperature any
	if req.Temperature != nil {
		temperature = req.Temperature
	}
	r := object{
		"id": id, "object": "response", "created_at": 1700000000, "status": status, "background": req.Background,
		"access_programs": object{"cyber": "standard"},
		"error":           nil, "incomplete_details": nil, "instructions": req.Instructions, "metadata": object{}, "model": req.Model,
		"output": output, "parallel_tool_calls": true, "temperature": temperature, "tool_choice": "auto", "tools": []any{}, "top_p": 1.0,
	}
	return r
}

// usage is the SDK's responses.ResponseUsage.
func usage(output string) object {
	n := providertest.Tokens(output)
	return object{
		"input_tokens": 11, "input_tokens_details": object{"cached_tokens": providertest.CachedTokens, "cache_write_tokens": 0},
		"output_tokens": n, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 11 + n,
	}
}

// message is the SDK's responses.ResponseOutputMessage.
func message(status string, parts ...any) object {
	if parts == nil {
		parts = []any{}
	}
	return object{"id": "msg_fake", "type": "message", "role": "assistant", "status": status, "content": parts}
}

// text is the SDK's responses.ResponseOutputText.
func text(s string) object {
	return object{"type": "output_text", "text": s, "annotations": []any{}, "logprobs": []any{}}
}

// start sends the events before a message's first piece: ResponseOutputItemAddedEvent, ResponseContentPartAddedEvent.
func (s *stream) start(part object) {
	s.event("response.output_item.added", object{"output_index": 0, "item": message("in_progress")})
	s.event("response.content_part.added", object{"output_index": 0, "content_index": 0, "item_id": "msg_fake", "part": part})
}

// piece is the SDK's responses.ResponseTextDeltaEvent.
func (s *stream) piece(delta string) {
	s.event("response.output_text.delta", object{"output_index": 0, "content_index": 0, "item_id": "msg_fake", "delta": delta, "logprobs": []any{}})
}

// finish sends the events after a message's last piece: ResponseTextDoneEvent, ResponseContentPartDoneEvent,
// ResponseOutputItemDoneEvent.
func (s *stream) finish(output string) {
	s.event("response.output_text.done", object{"output_index": 0, "content_index": 0, "item_id": "msg_fake", "text": output, "logprobs": []any{}})
	s.event("response.content_part.done", object{"output_index": 0, "content_index": 0, "item_id": "msg_fake", "part": text(output)})
	s.event("response.output_item.done", object{"output_index": 0, "item": message("completed", text(output))})
}

// end sends the last event, such as ResponseCompletedEvent, with usage.
func (s *stream) end(status, output string, change func(object), items ...any) {
	r := s.response(status, items...)
	r["usage"] = usage(output)
	if change != nil {
		change(r)
	}
	s.event("response."+status, object{"response": r})
}

// ResponsesOK streams a good answer.
func ResponsesOK() providertest.Behaviour {
	return func(x *providertest.Exchange) { ResponsesSays(read(x.Entry.Body).output())(x) }
}

// ResponsesSays streams the given output.
func ResponsesSays(output string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.start(text(""))
		for _, p := range providertest.Pieces(output, 3) {
			s.piece(p)
		}
		s.finish(output)
		s.end("completed", output, nil, message("completed", text(output)))
	}
}

// ResponsesStarts acknowledges, streams a piece and then nothing.
func ResponsesStarts() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.start(text(""))
		s.piece("{")
		x.Until(nil)
	}
}

// ResponsesCut streams pieces and ends cleanly, without the last event.
func ResponsesCut() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.start(text(""))
		s.piece("{")
	}
}

// ResponsesDamaged streams a good answer with one broken event in its middle.
func ResponsesDamaged() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.start(text(""))
		x.Data(`{"type":"response.output_text.delta","del`)
		s.finish("{}")
		s.end("completed", "{}", nil, message("completed", text("{}")))
	}
}

// ResponsesIncomplete streams a piece and ends for the reason: max_output_tokens or content_filter.
func ResponsesIncomplete(reason string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.start(text(""))
		s.piece("{")
		s.end("incomplete", "{", func(r object) { r["incomplete_details"] = object{"reason": reason} }, message("incomplete", text("{")))
	}
}

// ResponsesFails streams a piece and ends with an error: ResponseFailedEvent.
func ResponsesFails(code string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.end("failed", "", func(r object) { r["error"] = object{"code": code, "message": "the fake provider says no"} })
	}
}

// ResponsesErrorEvent streams a piece and then an error: ResponseErrorEvent.
func ResponsesErrorEvent(code string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.event("error", object{"code": code, "message": "the fake provider says no", "param": nil})
	}
}

// ResponsesRefuses streams a refusal: ResponseRefusalDeltaEvent, ResponseRefusalDoneEvent.
func ResponsesRefuses() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		const words = "I cannot help with that."
		s := open(x)
		part := func(words string) object { return object{"type": "refusal", "refusal": words} }
		s.start(part(""))
		for _, p := range strings.SplitAfter(words, " ") {
			s.event("response.refusal.delta", object{"output_index": 0, "content_index": 0, "item_id": "msg_fake", "delta": p})
		}
		s.event("response.refusal.done", object{"output_index": 0, "content_index": 0, "item_id": "msg_fake", "refusal": words})
		s.event("response.content_part.done", object{"output_index": 0, "content_index": 0, "item_id": "msg_fake", "part": part(words)})
		s.event("response.output_item.done", object{"output_index": 0, "item": message("completed", part(words))})
		s.end("completed", words, nil, message("completed", part(words)))
	}
}

// ResponsesTool ends with a call of a tool, without being asked for one: ResponseFunctionToolCall.
func ResponsesTool() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.end("completed", "", nil, object{"id": "fc_fake", "type": "function_call", "call_id": "call_fake", "name": "look_up", "arguments": "{}", "status": "completed"})
	}
}
