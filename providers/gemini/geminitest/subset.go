package geminitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// documented are the keywords that GenerateContentConfig.ResponseJsonSchema lists.
var documented = []string{
	"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems",
	"minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required", "propertyOrdering",
}

var types = []any{"string", "number", "integer", "boolean", "object", "array", "null"}

// maxUnrolled is how deep references may lead without passing a property that is not required.
const maxUnrolled = 64

// outsideOfSubset says what keeps a request's schema from the documented subset, nothing if it is in it. It is written down
// apart from the adapter, so that both would have to be wrong in the same way.
func outsideOfSubset(body []byte) string {
	var doc struct {
		GenerationConfig struct {
			ResponseJSONSchema any `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	if json.Unmarshal(body, &doc) != nil || doc.GenerationConfig.ResponseJSONSchema == nil {
		return ""
	}
	root := doc.GenerationConfig.ResponseJSONSchema
	if problem := outside(root, "#"); problem != "" {
		return problem
	}
	return unroll(root, root, "#", 0)
}

func outside(schema any, at string) string {
	s, ok := schema.(map[string]any)
	if !ok {
		return at + " is not an object"
	}
	for _, k := range slices.Sorted(maps.Keys(s)) {
		v, here := s[k], at+"/"+k
		if !slices.Contains(documented, k) {
			return here + " is not supported"
		}
		if s["$ref"] != nil && !strings.HasPrefix(k, "$") {
			return here + " stands beside $ref"
		}
		problem := ""
		switch k {
		case "type":
			list, ok := v.([]any)
			if !ok {
				list = []any{v}
			}
			for _, t := range list {
				if !slices.Contains(types, t) {
					problem = here + " is no type"
				}
			}
		case "enum":
			list, _ := v.([]any)
			for _, e := range list {
				_, text := e.(string)
				_, number := e.(float64)
				if !text && !number {
					problem = here + " lists a value that is neither a string nor a number"
				}
			}
		case "properties", "$defs":
			m, _ := v.(map[string]any)
			for name, inner := range m {
				if p := outside(inner, here+"/"+name); p != "" {
					problem = p
				}
			}
		case "anyOf", "oneOf", "prefixItems":
			list, _ := v.([]any)
			for i, inner := range list {
				if p := outside(inner, fmt.Sprintf("%s/%d", here, i)); p != "" {
					problem = p
				}
			}
		case "items":
			problem = outside(v, here)
		case "additionalProperties":
			if _, ok := v.(bool); !ok {
				problem = outside(v, here)
			}
		}
		if problem != "" {
			return problem
		}
	}
	return ""
}

// unroll follows what every document must have. A schema that contains itself there has no end.
func unroll(schema, root any, at string, depth int) string {
	if depth > maxUnrolled {
		return at + " contains itself"
	}
	s, _ := schema.(map[string]any)
	var next []any
	if ref, ok := s["$ref"].(string); ok {
		target := root
		for _, key := range strings.Split(strings.Trim(strings.TrimPrefix(ref, "#"), "/"), "/") {
			if m, _ := target.(map[string]any); key != "" {
				target = m[key]
			}
		}
		if target == nil {
			return at + " refers to nothing"
		}
		next = append(next, target)
	}
	if s["items"] != nil {
		next = append(next, s["items"])
	}
	for _, k := range []string{"anyOf", "oneOf", "prefixItems"} {
		list, _ := s[k].([]any)
		next = append(next, list...)
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range required {
		if key, _ := name.(string); properties[key] != nil {
			next = append(next, properties[key])
		}
	}
	for _, n := range next {
		if problem := unroll(n, root, at, depth+1); problem != "" {
			return problem
		}
	}
	return ""
}
