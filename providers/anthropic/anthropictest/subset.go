package anthropictest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// outsideOfSubset says what keeps a schema from the documented subset of structured outputs, nothing if it is in it. It is
// written down apart from the adapter, so that both would have to be wrong in the same way.
func outsideOfSubset(schema json.RawMessage) string {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		return "not a JSON object"
	}
	s := subset{root: root}
	if problem := s.check(root, nil); problem != "" {
		return problem
	}
	switch {
	case s.optional > 24:
		return fmt.Sprintf("Schemas contains too many optional parameters (%d)", s.optional)
	case s.unions > 16:
		return fmt.Sprintf("Schemas contains too many parameters with union types (%d)", s.unions)
	}
	return ""
}

type subset struct {
	root             map[string]any
	optional, unions int
}

var subsetKeywords = map[string]bool{
	"type": true, "enum": true, "const": true, "anyOf": true, "allOf": true, "$ref": true, "$defs": true, "properties": true, "required": true,
	"additionalProperties": true, "items": true, "minItems": true, "format": true, "pattern": true, "title": true, "description": true, "default": true,
}

var subsetFormats = []any{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}

var lookaround = regexp.MustCompile(`\(\?[=!<]|\\[1-9bB]`)

// check looks at one schema. refs are the references that led to it.
func (s *subset) check(schema map[string]any, refs []string) string {
	keys := make([]string, 0, len(schema))
	for k := range schema {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if !subsetKeywords[k] {
			return "property '" + k + "' is not supported"
		}
		if problem := s.keyword(k, schema[k], refs); problem != "" {
			return problem
		}
	}
	if schema["type"] == "object" {
		return s.object(schema)
	}
	return ""
}

func (s *subset) object(schema map[string]any) string {
	if open, ok := schema["additionalProperties"].(bool); open || !ok {
		return "For 'object' type, 'additionalProperties' must be explicitly set to false"
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	s.optional += len(properties) - len(required)
	return ""
}

func (s *subset) keyword(key string, v any, refs []string) string {
	switch key {
	case "type":
		if _, list := v.([]any); list {
			s.unions++
		}
	case "enum":
		for _, e := range asList(v) {
			switch e.(type) {
			case map[string]any, []any:
				return "enum: complex types are not supported"
			}
		}
	case "minItems":
		if v != 0.0 && v != 1.0 {
			return "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
		}
	case "format":
		if !slices.Contains(subsetFormats, v) {
			return fmt.Sprintf("format '%v' is not supported", v)
		}
	case "pattern":
		if text, ok := v.(string); !ok || lookaround.MatchString(text) {
			return "pattern is not supported"
		}
	case "properties", "$defs":
		children, _ := v.(map[string]any)
		for _, child := range children {
			if problem := s.child(child, refs); problem != "" {
				return problem
			}
		}
	case "items":
		return s.child(v, refs)
	case "anyOf", "allOf":
		if key == "anyOf" {
			s.unions++
		}
		for _, child := range asList(v) {
			if problem := s.child(child, refs); problem != "" {
				return problem
			}
		}
	case "$ref":
		return s.reference(v, refs)
	}
	return ""
}

func (s *subset) reference(v any, refs []string) string {
	ref, _ := v.(string)
	if slices.Contains(refs, ref) || ref == "#" {
		return "Circular references are not supported: " + ref
	}
	defs, _ := s.root["$defs"].(map[string]any)
	target, ok := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	if !ok {
		return "$ref '" + ref + "' is not supported"
	}
	counts := *s // what is behind a reference counts where it is defined
	return counts.check(target, append(slices.Clone(refs), ref))
}

func (s *subset) child(v any, refs []string) string {
	schema, ok := v.(map[string]any)
	if !ok {
		return "a schema must be an object"
	}
	return s.check(schema, refs)
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

var (
	toolNames    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	propertyKeys = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

// toolProblem says what the API refuses a tool for.
func toolProblem(name string, schema json.RawMessage) string {
	var s map[string]any
	if json.Unmarshal(schema, &s) != nil || s["type"] != "object" {
		return "input_schema.type: Input should be 'object'"
	}
	if !toolNames.MatchString(name) {
		return "name: String should match pattern '" + toolNames.String() + "'"
	}
	for _, k := range []string{"oneOf", "allOf", "anyOf"} {
		if _, ok := s[k]; ok {
			return "input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for k := range properties {
		if !propertyKeys.MatchString(k) {
			return "input_schema.properties: Property keys should match pattern '" + propertyKeys.String() + "'"
		}
	}
	return ""
}
