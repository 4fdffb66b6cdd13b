package openai

import (
	"encoding/json"
	"fmt"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/openaicompat"
)

var _ providers.WireFaulter = (*Provider)(nil)

// WireFaults implements providers.WireFaulter. Events of the Responses API are the SDK's (responses/response.go of
// github.com/openai/openai-go/v3 v3.99.0): ResponseCreatedEvent, ResponseOutputItemAddedEvent, ResponseContentPartAddedEvent,
// ResponseTextDeltaEvent, ResponseCompletedEvent and ResponseIncompleteEvent, with Response, ResponseOutputMessage and
// ResponseOutputRefusal in them.
func (p *Provider) WireFaults(model string) providers.WireFaults {
	f := openaicompat.ChatWireFaults(model) // errors are the same for both
	if p.cfg.API == APIChat {
		return f
	}
	r := responseEvents{model: model, background: p.cfg.Background}
	const (
		text    = `{"type":"output_text","text":"{","annotations":[],"logprobs":[]}`
		refusal = `{"type":"refusal","refusal":"I cannot help with that."}`
	)
	begun := r.begun()
	f.Refusal = providers.WireStream(r.created(), r.ended("completed", "null", "completed", refusal))
	f.Truncation = providers.WireStream(begun, r.ended("incomplete", `{"reason":"max_output_tokens"}`, "incomplete", text))
	f.Filter = providers.WireStream(begun, r.ended("incomplete", `{"reason":"content_filter"}`, "incomplete", text))
	f.Damaged = providers.WireStream(begun, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"del\n\n",
		r.ended("completed", "null", "completed", text))
	f.Begun = providers.WireStream(begun)
	return f
}

// responseEvents are those of one response.
type responseEvents struct {
	model      string
	background bool
}

func (r responseEvents) event(kind, fields string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"sequence_number\":0,%s}\n\n", kind, kind, fields)
}

func (r responseEvents) response(status, incomplete, output, usage string) string {
	model, _ := json.Marshal(r.model) //nolint:errchkjson // a string always marshals
	return fmt.Sprintf(`"response":{"id":"resp_fault","object":"response","created_at":1700000000,"status":%q,"background":%t,"access_programs":{"cyber":"standard"},"error":null,`+
		`"incomplete_details":%s,"instructions":null,"metadata":{},"model":%s,"output":[%s],"parallel_tool_calls":true,"temperature":null,`+
		`"tool_choice":"auto","tools":[],"top_p":1,"usage":%s}`, status, r.background, incomplete, model, output, usage)
}

func (r responseEvents) created() string {
	return r.event("response.created", r.response("in_progress", "null", "", "null"))
}

// begun are the events up to a first piece of text.
func (r responseEvents) begun() string {
	const place = `"output_index":0,"content_index":0,"item_id":"msg_fault"`
	return r.created() +
		r.event("response.output_item.added", `"output_index":0,"item":{"id":"msg_fault","type":"message","role":"assistant","status":"in_progress","content":[]}`) +
		r.event("response.content_part.added", place+`,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`) +
		r.event("response.output_text.delta", place+`,"delta":"{","logprobs":[]`)
}

// ended is the last event, with a message that has the part.
func (r responseEvents) ended(status, incomplete, message, part string) string {
	output := fmt.Sprintf(`{"id":"msg_fault","type":"message","role":"assistant","status":%q,"content":[%s]}`, message, part)
	return r.event("response."+status, r.response(status, incomplete, output, `{"input_tokens":11,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},`+
		`"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":12}`))
}
