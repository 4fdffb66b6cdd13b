// Package geminitest plays the Gemini API's streamGenerateContent on package providertest's server, for tests.
//
// What it sends has the shapes of the official SDK, google.golang.org/genai v1.77.0: chunks are types.go's
// GenerateContentResponse with its Candidate, Content, Part, GenerateContentResponsePromptFeedback and
// GenerateContentResponseUsageMetadata, each named where it is built; errors are api_client.go's APIError in the envelope of
// responseWithError, with the details of google/rpc/error_details.proto (https://cloud.google.com/apis/design/errors). How they are framed is
// what api_client.go's iterateResponseStream and newAPIError read. A test decodes all of it with those types and reads it with
// the SDK's own client. It answers 400 to a request that types.go's Content and GenerationConfig do not have, or
// whose responseJsonSchema is outside of the subset that GenerateContentConfig.ResponseJsonSchema documents there.
package geminitest

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"
	"google.golang.org/genai"

	"github.com/docket-gateway/docket/providers/providertest"
	"github.com/docket-gateway/docket/providers/providertest/sdkwire"
)

// request is GenerateContentRequest, as far as the fake knows it (https://ai.google.dev/api/generate-content).
type request struct {
	Contents          []*genai.Content        `json:"contents"`
	SystemInstruction *genai.Content          `json:"systemInstruction"`
	GenerationConfig  *genai.GenerationConfig `json:"generationConfig"`
}

var streamPath = regexp.MustCompile(`/v1(?:alpha|beta)?/((?:models|tunedModels)/([^/:]+)):streamGenerateContent$`)

// Stream is the protocol. A request that is not scripted is answered well.
func Stream() providertest.Protocol {
	return providertest.Protocol{
		Serves:  func(r *http.Request) bool { return r.Method == http.MethodPost && streamPath.MatchString(r.URL.Path) },
		Model:   modelOf,
		Check:   check,
		Default: func(string) providertest.Behaviour { return OK() },
		Unnamed: true,
	}
}

func modelOf(r *http.Request, _ []byte) string {
	if m := streamPath.FindStringSubmatch(r.URL.Path); m != nil {
		return m[2]
	}
	return ""
}

func read(body []byte) request {
	var r request
	_ = json.Unmarshal(body, &r) // what does not decode was refused before
	return r
}

// output is what the request is answered with by itself.
func output(body []byte) string {
	var raw struct {
		GenerationConfig struct {
			ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	_ = json.Unmarshal(body, &raw) // as above
	// A request does not name its task, and the demo's rules are by task.
	task := ""
	switch properties := gjson.GetBytes(raw.GenerationConfig.ResponseJSONSchema, "properties"); {
	case properties.Get("invoice_number").Exists():
		task = "invoice"
	case properties.Get("category").Exists():
		task = "triage"
	}
	req, system := read(body), ""
	if c := req.SystemInstruction; c != nil && len(c.Parts) > 0 {
		system = c.Parts[0].Text
	}
	return providertest.Answer(task, system, req.Contents[0].Parts[0].Text, raw.GenerationConfig.ResponseJSONSchema)
}

// check refuses what the API would not take.
func check(r *http.Request, body []byte) providertest.Behaviour {
	switch contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case r.URL.Query().Has("key"):
		return refuse("the key must not be in the URL") // it would be taken, and logged by everything in between
	case r.Header.Get("X-Goog-Api-Key") == "":
		return Error(http.StatusForbidden, "PERMISSION_DENIED")
	case r.URL.RawQuery != "alt=sse":
		return refuse("only alt=sse is played here")
	case contentType != "application/json":
		return refuse("the content type must be application/json")
	}
	unknown, err := sdkwire.Fields[request](body)
	if err != nil {
		return refuse("invalid JSON payload received: " + err.Error())
	}
	if len(unknown) > 0 {
		return refuse("invalid JSON payload received: " + strings.Join(unknown, ", "))
	}
	if problem := read(body).problem(); problem != "" {
		return refuse(problem)
	}
	if problem := outsideOfSubset(body); problem != "" {
		return refuse("invalid responseJsonSchema: " + problem)
	}
	return nil
}

// problem says what is wrong with a request that has the right fields.
func (r request) problem() string {
	if len(r.Contents) == 0 {
		return "contents is not specified"
	}
	all := r.Contents
	if r.SystemInstruction != nil {
		all = append(all, r.SystemInstruction)
	}
	for _, c := range all {
		if c != r.SystemInstruction && c.Role != genai.RoleUser && c.Role != genai.RoleModel {
			return "please use a valid role: user, model"
		}
		if len(c.Parts) == 0 {
			return "contents.parts must not be empty"
		}
		for _, p := range c.Parts {
			if p.Text == "" {
				return "contents.parts.data: required oneof field 'data' must have one initialized field"
			}
		}
	}
	c := r.GenerationConfig
	switch {
	case c == nil:
		return ""
	case c.Temperature != nil && (*c.Temperature < 0 || *c.Temperature > 2):
		return "temperature must be in the range [0.0, 2.0]"
	case c.MaxOutputTokens < 0:
		return "max_output_tokens must be positive"
	case c.ResponseJsonSchema != nil && c.ResponseSchema != nil:
		return "only one of response_schema and response_json_schema can be set"
	case c.ResponseJsonSchema != nil && c.ResponseMIMEType != "application/json":
		return "response_json_schema needs the response_mime_type application/json"
	}
	return ""
}

func refuse(message string) providertest.Behaviour {
	return providertest.Status(http.StatusBadRequest, jsonType, errorBody(http.StatusBadRequest, "INVALID_ARGUMENT", message))
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("geminitest: %v", err)) // not reachable: strings, numbers and what was decoded
	}
	return string(b)
}
