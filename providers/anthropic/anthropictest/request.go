// Package anthropictest plays Anthropic's Messages API on package providertest's server, for tests.
//
// What it sends has the shapes of the official SDK, github.com/anthropics/anthropic-sdk-go v1.84.0: events of message.go
// (MessageStartEvent, ContentBlockDeltaEvent, MessageDeltaEvent and so on, each named where it is built), errors of
// shared/shared.go (ErrorResponse); ping and error events as in
// https://platform.claude.com/docs/en/build-with-claude/streaming#event-types. A test decodes all of it with those types.
// It answers 400 to a request that the SDK's types do not have, that breaks a documented bound, or whose schema is not in
// the documented subset (https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations).
package anthropictest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/docket-gateway/docket/providers/providertest"
	"github.com/docket-gateway/docket/providers/providertest/sdkwire"
)

// request is what answers and checks depend on.
type request struct {
	Model       string       `json:"model"`
	MaxTokens   *json.Number `json:"max_tokens"`
	Stream      bool         `json:"stream"`
	Temperature *float64     `json:"temperature"`
	System      []struct {
		Text string `json:"text"`
	} `json:"system"`
	Messages []struct {
		Role    string `json:"role"`
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	} `json:"messages"`
	OutputConfig struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
	Tools []struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
}

func read(body []byte) request {
	var r request
	_ = json.Unmarshal(body, &r) // what does not decode was refused before
	return r
}

// tool is the name of the tool that is forced, empty if none is.
func (r request) tool() string {
	if r.ToolChoice.Type == "tool" {
		return r.ToolChoice.Name
	}
	return ""
}

func (r request) schema() json.RawMessage {
	if len(r.Tools) > 0 {
		return r.Tools[0].InputSchema
	}
	return r.OutputConfig.Format.Schema
}

// output is what the request is answered with by itself.
func (r request) output() string {
	prompt, system := "", ""
	if len(r.Messages) > 0 && len(r.Messages[0].Content) > 0 {
		prompt = r.Messages[0].Content[0].Text
	}
	if len(r.System) > 0 {
		system = r.System[0].Text
	}
	return providertest.Answer(r.task(), system, prompt, r.schema())
}

// task tells the shipped tasks by their schemas: no request of this API names its task.
func (r request) task() string {
	var s struct {
		Properties map[string]any `json:"properties"`
	}
	_ = json.Unmarshal(r.schema(), &s)
	for property, task := range map[string]string{"category": "triage", "invoice_number": "invoice"} {
		if _, ok := s.Properties[property]; ok {
			return task
		}
	}
	return ""
}

// refuse is the 400 for a request that the API would not take.
func refuse(words string) providertest.Behaviour {
	return providertest.Status(http.StatusBadRequest, "application/json", ErrorBody("invalid_request_error", words))
}

// check decodes the request with the SDK's type of its parameters and looks at the documented bounds. stream is not in the
// type: the SDK adds it when it sends.
func check(r *http.Request, body []byte) providertest.Behaviour {
	if r.Header.Get("X-Api-Key") == "" {
		return Error(http.StatusUnauthorized, "authentication_error")
	}
	if r.Header.Get("Anthropic-Version") != "2023-06-01" {
		return refuse("anthropic-version: header is required")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return refuse("the request body is not valid JSON")
	}
	if string(fields["stream"]) != "true" {
		return refuse("stream: this fake only streams")
	}
	delete(fields, "stream")
	unknown, err := sdkwire.Unknown[sdk.MessageNewParams]([]byte(encode(fields)))
	if err != nil {
		return refuse(err.Error())
	}
	if len(unknown) > 0 {
		return refuse(strings.Join(unknown, ", ") + ": Extra inputs are not permitted")
	}
	if problem := read(body).problem(); problem != "" {
		return refuse(problem)
	}
	return nil
}

// problem says which documented bound the request breaks, nothing if none.
func (r request) problem() string {
	switch {
	case r.Model == "":
		return "model: Field required"
	case r.MaxTokens == nil:
		return "max_tokens: Field required"
	}
	if n, err := r.MaxTokens.Int64(); err != nil || n < 1 {
		return "max_tokens: must be at least 1"
	}
	if t := r.Temperature; t != nil {
		if strings.HasPrefix(r.Model, "reasoning") {
			return "`temperature` is deprecated for this model."
		}
		if *t < 0 || *t > 1 {
			return "temperature: range: 0..1"
		}
	}
	if len(r.Messages) == 0 || r.Messages[0].Role != "user" {
		return "messages: first message must use the \"user\" role"
	}
	for _, m := range r.Messages {
		for _, c := range m.Content {
			if c.Type == "text" && c.Text == "" {
				return "messages: text content blocks must be non-empty"
			}
		}
	}
	for _, s := range r.System {
		if s.Text == "" {
			return "system: text content blocks must be non-empty"
		}
	}
	if len(r.OutputConfig.Format.Schema) > 0 {
		if problem := outsideOfSubset(r.OutputConfig.Format.Schema); problem != "" {
			return "output_config.format.schema: " + problem
		}
	}
	offered := false
	for i, t := range r.Tools {
		offered = offered || t.Name == r.ToolChoice.Name
		if problem := toolProblem(t.Name, t.InputSchema); problem != "" {
			return fmt.Sprintf("tools.%d.custom.%s", i, problem)
		}
	}
	if r.ToolChoice.Type == "tool" && !offered {
		return "tool_choice: Tool '" + r.ToolChoice.Name + "' not found in provided tools"
	}
	return ""
}

// Error is Anthropic's own error with the given status and type. Headers are pairs.
func Error(status int, kind string, headers ...string) providertest.Behaviour {
	return providertest.Status(status, "application/json", ErrorBody(kind, "the fake provider says no"), headers...)
}

// ErrorBody is the JSON of Anthropic's own error, the SDK's shared.ErrorResponse.
func ErrorBody(kind, words string) string {
	return encode(object{"type": "error", "error": object{"type": kind, "message": words}, "request_id": "req_fake"})
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("anthropictest: %v", err)) // not reachable: strings, numbers and what was decoded
	}
	return string(b)
}
