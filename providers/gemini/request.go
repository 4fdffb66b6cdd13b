package gemini

import (
	"net/http"

	"google.golang.org/genai"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/schemasubset"
)

// config is everything of a request but the prompt. An output schema without a form is an error, and nothing is sent.
func (p *Provider) config(req providers.Request) (*genai.GenerateContentConfig, error) {
	opts := &genai.HTTPOptions{Headers: http.Header{}}
	if req.Traceparent != "" {
		opts.Headers.Set("Traceparent", req.Traceparent)
	}
	c := &genai.GenerateContentConfig{
		HTTPOptions:           opts,
		AutomaticContinuation: genai.Ptr(false), // would send further requests
		MaxOutputTokens:       int32(req.MaxOutputTokens),
	}
	if req.System != "" {
		c.SystemInstruction = &genai.Content{Parts: []*genai.Part{genai.NewPartFromText(req.System)}}
	}
	if !p.models[req.Model].Reasoning {
		c.Temperature = genai.Ptr(float32(req.Temperature))
	}
	if len(req.Schema) == 0 {
		return c, nil
	}
	form, err := schemasubset.Convert(req.Schema, jsonSchema)
	if err != nil {
		return nil, err //nolint:wrapcheck // says all
	}
	c.ResponseMIMEType = "application/json"
	// Past the SDK's field, which would sort the keys and round the numbers: the order of the properties is the order in
	// which the model writes.
	opts.ExtraBody = map[string]any{"generationConfig": map[string]any{"responseJsonSchema": form.Schema}}
	return c, nil
}

// jsonSchema is what responseJsonSchema takes, as the SDK's GenerateContentConfig.ResponseJsonSchema says (types.go,
// v1.77.0) and https://ai.google.dev/api/generate-content#generationconfig. It is chosen over responseSchema, whose subset of
// OpenAPI has neither references nor numbers in an enum nor closed objects. Lengths, patterns and the like are not in it. They, const and enum
// of booleans and null, and formats beside the documented ones are left to our own validation: a weaker form, never another
// one. Google names no limits of size and depth; a schema that is too large for it is refused by it, with status 400.
var jsonSchema = schemasubset.Rules{
	Name:     "Gemini's responseJsonSchema",
	Keywords: []string{"title", "description", "minimum", "maximum", "minItems", "maxItems"},
	Dropped: []string{
		"$schema", "$id", "$anchor", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly",
		"minLength", "maxLength", "pattern", "multipleOf", "exclusiveMinimum", "exclusiveMaximum",
		"uniqueItems", "minProperties", "maxProperties", "contentEncoding", "contentMediaType", "contentSchema",
	},
	Formats:        []string{"date-time", "date", "time"},
	ConstAsEnum:    true,
	ListedKinds:    []string{"string", "number"},
	OptionalCycles: true,
}
