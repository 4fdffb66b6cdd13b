package openai

import (
	"encoding/json"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/schemasubset"
)

// strictMode is what Structured Outputs take with strict: true, as documented at
// https://platform.openai.com/docs/guides/structured-outputs#supported-schemas. Bounds on the length of texts and the like
// are not in it; they are left to our own validation, and the model reads them in the prompt, if the task's template shows
// it the schema.
var strictMode = schemasubset.Rules{
	Name: "OpenAI's strict mode",
	Keywords: []string{
		"title", "description", "pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
	},
	Dropped: []string{
		"$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly",
		"minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties",
		"contentEncoding", "contentMediaType", "contentSchema",
	},
	Formats:     []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
	AllRequired: true,
	MaxDepth:    10, MaxProperties: 5000, MaxEnumValues: 1000, MaxNames: 120_000,
}

// form returns the request with its schema as it is sent, and what turns the answer back; nil if it is sent as it is.
func (p *Provider) form(req providers.Request) (providers.Request, *schemasubset.Form, error) {
	if !p.cfg.StrictSchema || len(req.Schema) == 0 {
		return req, nil, nil
	}
	f, err := schemasubset.Convert(req.Schema, strictMode)
	if err != nil {
		return req, nil, err //nolint:wrapcheck // says all
	}
	req.Schema = f.Schema
	return req, f, nil
}

// back turns the answer of a request with that schema into one of the task's own.
func (p *Provider) back(schema json.RawMessage, out providers.Outcome) providers.Outcome {
	if out.Kind != providers.Completed {
		return out
	}
	if _, f, err := p.form(providers.Request{Schema: schema}); err == nil && f != nil {
		out.Output = f.Back(out.Output)
	}
	return out
}
