// Package openaitest plays OpenAI's Responses API and Chat Completions on package providertest's server, for tests.
//
// What it sends has the shapes of the official SDK, github.com/openai/openai-go/v3 v3.99.0: events of
// responses/response.go (ResponseCreatedEvent, ResponseTextDeltaEvent, ResponseCompletedEvent and so on, each named where
// it is built), chunks of chatcompletion.go (ChatCompletionChunk), errors of internal/apierror/apierror.go. A test
// decodes all of it with those types. It answers 400 to a request that those types do not have, or whose strict schema is
// not in the documented subset (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas).
package openaitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/docket-gateway/docket/providers/providertest"
	"github.com/docket-gateway/docket/providers/providertest/sdkwire"
)

// request is what both protocols' answers depend on.
type request struct {
	Model        string `json:"model"`
	Stream       bool   `json:"stream"`
	Background   bool   `json:"background"`
	Instructions any    `json:"instructions"`
	Input        string `json:"input"`
	Text         struct {
		Format format `json:"format"`
	} `json:"text"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	ResponseFormat struct {
		JSONSchema format `json:"json_schema"`
	} `json:"response_format"`
	Temperature *json.Number `json:"temperature"`
}

type format struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

func read(body []byte) request {
	var r request
	_ = json.Unmarshal(body, &r) // what does not decode was refused before
	return r
}

func (r request) format() format {
	if r.Text.Format.Name != "" {
		return r.Text.Format
	}
	return r.ResponseFormat.JSONSchema
}

func (r request) prompt() string {
	for _, m := range r.Messages {
		if m.Role == "user" {
			return m.Content
		}
	}
	return r.Input
}

func (r request) system() string {
	for _, m := range r.Messages {
		if m.Role == "system" || m.Role == "developer" {
			return m.Content
		}
	}
	words, _ := r.Instructions.(string)
	return words
}

// output is what the request is answered with by itself.
func (r request) output() string {
	return providertest.Answer(r.format().Name, r.system(), r.prompt(), r.format().Schema)
}

func modelOf(_ *http.Request, body []byte) string { return read(body).Model }

// refuse is the 400 for a request that the API would not take.
func refuse(param, message string) providertest.Behaviour {
	return providertest.Status(http.StatusBadRequest, "application/json",
		encode(errorBody{Error: apiError{Message: message, Type: "invalid_request_error", Param: &param}}))
}

// checkRequest decodes the request with the SDK's type of its parameters. stream is not in it: the SDK adds it when it
// sends.
func checkRequest[T any](r *http.Request, body []byte) providertest.Behaviour {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		return Error(http.StatusUnauthorized, "invalid_api_key")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return refuse("", "not a JSON object")
	}
	delete(fields, "stream")
	unknown, err := sdkwire.Unknown[T]([]byte(encode(fields)))
	if err != nil {
		return refuse("", err.Error())
	}
	if len(unknown) > 0 {
		return refuse(unknown[0], "unknown parameters: "+strings.Join(unknown, ", "))
	}
	req := read(body)
	if req.Model == "" {
		return refuse("model", "you must provide a model parameter")
	}
	if strings.HasPrefix(req.Model, "reasoning") && req.Temperature != nil {
		return refuse("temperature", "unsupported parameter: 'temperature' is not supported with this model")
	}
	if f := req.format(); f.Strict {
		if problem := outsideOfSubset(f.Schema); problem != "" {
			return refuse("schema", "invalid schema for response_format '"+f.Name+"': "+problem)
		}
	}
	return nil
}

func checkResponses(r *http.Request, body []byte) providertest.Behaviour {
	if r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "/cancel") {
		return nil
	}
	return checkRequest[responses.ResponseNewParams](r, body)
}

func checkChat(r *http.Request, body []byte) providertest.Behaviour {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) == nil && fields["max_tokens"] != nil && strings.HasPrefix(read(body).Model, "reasoning") {
		return refuse("max_tokens", "unsupported parameter: use 'max_completion_tokens' instead")
	}
	return checkRequest[openai.ChatCompletionNewParams](r, body)
}

type errorBody struct {
	Error apiError `json:"error"`
}

// apiError is the SDK's apierror.Error.
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Error is OpenAI's own error with the given status and code. Headers are pairs.
func Error(status int, code string, headers ...string) providertest.Behaviour {
	return providertest.Status(status, "application/json", ErrorBody(code), headers...)
}

// ErrorBody is the JSON of OpenAI's own error.
func ErrorBody(code string) string {
	return encode(errorBody{Error: apiError{Message: "the fake provider says no", Type: "fake_error", Code: &code}})
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("openaitest: %v", err)) // not reachable: strings, numbers and what was decoded
	}
	return string(b)
}
