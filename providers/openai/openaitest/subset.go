package openaitest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// subset is what https://platform.openai.com/docs/guides/structured-outputs#supported-schemas lists.
var subset = []string{
	"type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$defs",
	"title", "description", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
}

var subsetFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// outsideOfSubset says what keeps a schema from the documented subset of strict mode, nothing if it is in it. It is written
// down apart from the adapter, so that both would have to be wrong in the same way.
func outsideOfSubset(schema json.RawMessage) string {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		return "schema must be a JSON Schema of 'type: \"object\"'"
	}
	if root["type"] != "object" || root["anyOf"] != nil {
		return "schema must be a JSON Schema of 'type: \"object\"'"
	}
	w := subsetWalk{}
	w.schema(root, "", 0)
	switch {
	case w.problem != "":
		return w.problem
	case w.properties > 5000:
		return "too many properties"
	case w.values > 1000:
		return "too many enum values"
	}
	return ""
}

type subsetWalk struct {
	properties, values int
	problem            string
}

func (w *subsetWalk) say(at, format string, args ...any) {
	if w.problem == "" {
		w.problem = "in context=(" + at + "), " + fmt.Sprintf(format, args...)
	}
}

func (w *subsetWalk) schema(v any, at string, depth int) {
	s, ok := v.(map[string]any)
	if !ok {
		w.say(at, "schema must be an object")
		return
	}
	for key := range s {
		if !slices.Contains(subset, key) {
			w.say(at, "'%s' is not permitted", key)
		}
	}
	if f, ok := s["format"].(string); ok && !slices.Contains(subsetFormats, f) {
		w.say(at, "format '%s' is not supported", f)
	}
	if s["$ref"] != nil && len(s) > 1 && s["$defs"] == nil {
		w.say(at, "$ref cannot have other keywords")
	}
	if s["type"] == nil && s["anyOf"] == nil && s["$ref"] == nil {
		w.say(at, "schema must have a 'type' key")
	}
	if list, ok := s["enum"].([]any); ok {
		w.values += len(list)
	}
	isObject := s["type"] == "object"
	if list, ok := s["type"].([]any); ok {
		isObject = slices.Contains(list, any("object"))
	}
	if isObject {
		w.object(s, at, depth)
	}
	if s["items"] != nil {
		w.schema(s["items"], at+"items", depth)
	}
	if list, ok := s["anyOf"].([]any); ok {
		for _, b := range list {
			w.schema(b, at+"anyOf", depth)
		}
	}
	if defs, ok := s["$defs"].(map[string]any); ok {
		for name, d := range defs {
			w.schema(d, at+name, 0)
		}
	}
}

func (w *subsetWalk) object(s map[string]any, at string, depth int) {
	if depth >= 10 {
		w.say(at, "%d levels of nesting exceeds limit of 10", depth+1)
	}
	if open, ok := s["additionalProperties"].(bool); open || !ok {
		w.say(at, "'additionalProperties' is required to be supplied and to be false")
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	w.properties += len(properties)
	if len(required) != len(properties) {
		w.say(at, "'required' is required to be supplied and to be an array including every key in properties")
	}
	for name, p := range properties {
		if !slices.Contains(required, any(name)) {
			w.say(at, "'required' misses '%s'", name)
		}
		w.schema(p, strings.Trim(at+" "+name, " "), depth+1)
	}
}
