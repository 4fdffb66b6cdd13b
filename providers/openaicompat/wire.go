package openaicompat

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

// completion is a chunk of a stream (with deltas) or a whole answer (with messages). Fields that are not here, such as
// reasoning, are not part of the output.
type completion struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int      `json:"index"`
	Delta        *message `json:"delta"`
	Message      *message `json:"message"`
	FinishReason string   `json:"finish_reason"`
}

type message struct {
	Content      string            `json:"content"`
	Refusal      string            `json:"refusal"`
	ToolCalls    []json.RawMessage `json:"tool_calls"`
	FunctionCall json.RawMessage   `json:"function_call"`
}

// readUsage returns the billed tokens, nil if they are not told. Counts that cannot be read are not told; they are no
// reason to give an answer up.
func readUsage(raw json.RawMessage) *providers.Usage {
	var fields struct {
		Input  json.RawMessage `json:"prompt_tokens"`
		Output json.RawMessage `json:"completion_tokens"`
		Of     json.RawMessage `json:"prompt_tokens_details"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	var of struct {
		Cached json.RawMessage `json:"cached_tokens"`
	}
	if len(fields.Of) > 0 && json.Unmarshal(fields.Of, &of) != nil {
		of.Cached = nil
	}
	u := &providers.Usage{InputTokens: count(fields.Input), CachedInputTokens: count(of.Cached), OutputTokens: count(fields.Output)}
	if u.InputTokens == nil && u.OutputTokens == nil {
		return nil
	}
	return u
}

func count(raw json.RawMessage) *int {
	var n *int64
	if len(raw) == 0 || json.Unmarshal(raw, &n) != nil || n == nil {
		return nil
	}
	return providers.Tokens(*n)
}

var errNotText = errors.New("openaicompat: not well-formed text")

// decode is json.Unmarshal without its silent repairs: it refuses invalid UTF-8 and lone surrogates, which
// encoding/json replaces.
func decode(data []byte) (completion, error) {
	var c completion
	if !exchange.WellFormed(data) {
		return c, errNotText
	}
	err := json.Unmarshal(data, &c)
	return c, err
}

// ReadErrorBody reads the provider's own error: {"error": {...}}, {"error": "text"} as of Ollama, or vLLM's older
// {"object": "error", "message": ...}.
func ReadErrorBody(body []byte) (exchange.ErrorBody, bool) {
	var doc struct {
		Error  json.RawMessage `json:"error"`
		Object string          `json:"object"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return exchange.ErrorBody{}, false
	}
	if doc.Object == "error" {
		return ReadErrorObject(body)
	}
	return ReadErrorObject(doc.Error)
}

// ReadErrorObject reads an error without its envelope.
func ReadErrorObject(raw json.RawMessage) (exchange.ErrorBody, bool) {
	var text string
	if len(raw) > 0 && json.Unmarshal(raw, &text) == nil && text != "" {
		return exchange.ErrorBody{Message: text}, true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return exchange.ErrorBody{}, false
	}
	return exchange.ErrorBody{Code: scalar(fields["code"]), Type: scalar(fields["type"]), Message: scalar(fields["message"])}, true
}

// scalar returns a string's or an integer's text, since servers use both for codes.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n int64
	if json.Unmarshal(raw, &n) == nil {
		return strconv.FormatInt(n, 10)
	}
	return ""
}
