package anthropic

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/schemasubset"
)

// structuredOutputs are what output_config.format takes, as documented at
// https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations and as the SDK's
// schemautil.go (v1.84.0) keeps it. Bounds on numbers, lengths and counts are not in it; they are left to our own
// validation, and the model reads them in the prompt, if the task's template shows it the schema.
var structuredOutputs = schemasubset.Rules{
	Name:     "Anthropic's structured outputs",
	Keywords: []string{"title", "description", "pattern", "minItems"},
	Dropped: []string{
		"$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly",
		"minLength", "maxLength", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"maxItems", "uniqueItems", "minProperties", "maxProperties",
		"contentEncoding", "contentMediaType", "contentSchema",
	},
	Formats:     []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
	Takes:       takes,
	NoRecursion: true,
	MaxOptional: 24, MaxUnions: 16,
}

// noPattern finds what patterns are not taken with: groups that look around or have names, references back, word boundaries and
// classes by Unicode property. Of counted repetitions only small ones are taken.
var noPattern = regexp.MustCompile(`\(\?[^:]|\\[1-9kpPbBAzZ]|\{[0-9]+,\}|\{[0-9,]*[0-9]{3}`)

// takes says which values of a keyword are taken: minItems is 0 or 1, patterns are simple ones.
func takes(keyword string, value json.RawMessage) bool {
	switch keyword {
	case "minItems":
		return string(value) == "0" || string(value) == "1"
	case "pattern":
		return !noPattern.MatchString(gjson.ParseBytes(value).String())
	default:
		return true
	}
}

// structuredForm is the schema as structured outputs take it. An answer in it needs no turning back.
func structuredForm(schema json.RawMessage) (json.RawMessage, error) {
	f, err := schemasubset.Convert(schema, structuredOutputs)
	if err != nil {
		return nil, &providers.Failure{Code: providers.CodeSchemaNotSupported, Message: err.Error()}
	}
	return f.Schema, nil
}

var toolProperty = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// checkToolSchema says what keeps a schema from being a tool's input_schema. The API answers each of these with 400 and has
// run nothing; here it is told before, and with the place.
func checkToolSchema(schema json.RawMessage) error {
	problem := func(at, what string) error {
		e := &schemasubset.Error{Mode: "Anthropic's tool input", Pointer: at, Problem: what}
		return &providers.Failure{Code: providers.CodeSchemaNotSupported, Message: e.Error()}
	}
	root := gjson.ParseBytes(schema)
	if !json.Valid(schema) || !root.IsObject() || root.Get("type").Type != gjson.String || root.Get("type").String() != "object" {
		return problem("", `must be of the type "object"`)
	}
	var err error
	root.ForEach(func(k, _ gjson.Result) bool {
		if slices.Contains([]string{"oneOf", "anyOf", "allOf"}, k.String()) {
			err = problem("/"+k.String(), "is not taken at the root")
		}
		return err == nil
	})
	root.Get("properties").ForEach(func(k, _ gjson.Result) bool {
		if err == nil && !toolProperty.MatchString(k.String()) {
			err = problem("/properties", fmt.Sprintf("has the name %q, which is not 1 to 64 letters, digits, dots, dashes or underscores", k.String()))
		}
		return err == nil
	})
	return err
}
