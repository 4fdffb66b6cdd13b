package openaicompat

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

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
	}
	if len(raw) == 0 || json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	u := &providers.Usage{InputTokens: count(fields.Input), OutputTokens: count(fields.Output)}
	if u.InputTokens == nil && u.OutputTokens == nil {
		return nil
	}
	return u
}

func count(raw json.RawMessage) *int {
	var n *int
	if len(raw) == 0 || json.Unmarshal(raw, &n) != nil || n == nil || *n < 0 {
		return nil
	}
	return n
}

var errNotText = errors.New("openaicompat: not well-formed text")

// decode is json.Unmarshal without its silent repairs: it refuses invalid UTF-8 and lone surrogates, which
// encoding/json replaces.
func decode(data []byte) (completion, error) {
	var c completion
	if !utf8.Valid(data) || loneSurrogate(data) {
		return c, errNotText
	}
	err := json.Unmarshal(data, &c)
	return c, err
}

// loneSurrogate looks for a \u escape of half a surrogate pair without its other half.
func loneSurrogate(data []byte) bool {
	if !bytes.Contains(data, []byte(`\u`)) {
		return false
	}
	high := false // the last thing read was the first half of a pair
	for i := 0; i < len(data); i++ {
		if data[i] == '\\' && i+5 < len(data) && data[i+1] == 'u' {
			code, err := strconv.ParseUint(string(data[i+2:i+6]), 16, 32)
			low := err == nil && code >= 0xdc00 && code <= 0xdfff
			if low != high {
				return true
			}
			high = err == nil && code >= 0xd800 && code <= 0xdbff
			i += 5
			continue
		}
		if high {
			return true
		}
		if data[i] == '\\' {
			i++ // the escaped character, so that \\u is not taken for \u
		}
	}
	return high
}

// readErrorBody reads the provider's own error: {"error": {...}}, {"error": "text"} as of Ollama, or vLLM's older
// {"object": "error", "message": ...}.
func readErrorBody(body []byte) (exchange.ErrorBody, bool) {
	var doc struct {
		Error  json.RawMessage `json:"error"`
		Object string          `json:"object"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return exchange.ErrorBody{}, false
	}
	if doc.Object == "error" {
		return readErrorObject(body)
	}
	return readErrorObject(doc.Error)
}

func readErrorObject(raw json.RawMessage) (exchange.ErrorBody, bool) {
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
