package demo

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/apd/v3"
)

// filler fills a schema with what the input holds.
type filler struct {
	root    any
	text    string // all strings of the input
	numbers []*apd.Decimal
}

func newFiller(root, in any) *filler {
	f := &filler{root: root}
	var parts []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			parts = append(parts, v)
		case json.Number:
			parts = append(parts, v.String())
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			for _, k := range keys {
				walk(v[k])
			}
		}
	}
	walk(in)
	f.text = strings.Join(parts, "\n")
	comma := decimalComma(f.text)
	for _, s := range number.FindAllString(f.text, 100) {
		if d := parseNumber(s, comma); d != nil {
			f.numbers = append(f.numbers, d)
		}
	}
	return f
}

// maxDepth ends recursive schemas.
const maxDepth = 20

// fill is the generic rule: an object gets its required properties and those that the input has by the same name; an
// enum the first of its words that the input's text holds, else its first; a string the input's field of that name,
// else the text, shortened; a number the next one found in the text, moved into its bounds; an array as few items as it
// may have, one at least.
func (f *filler) fill(schema any, name string, in any, depth int) any {
	s := f.resolve(schema)
	if depth > maxDepth {
		return nil
	}
	if c, ok := s["const"]; ok {
		return c
	}
	if options, ok := s["enum"].([]any); ok && len(options) > 0 {
		return f.choose(options, in)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if options, ok := s[key].([]any); ok && len(options) > 0 {
			return f.fill(options[0], name, in, depth+1)
		}
	}
	switch typeOf(s) {
	case "object":
		return f.object(s, in, depth)
	case "array":
		return f.array(s, name, in, depth)
	case "number", "integer":
		return f.number(s, in, typeOf(s) == "integer")
	case "boolean":
		b, _ := in.(bool)
		return b
	case "null":
		return nil
	default:
		return f.string(s, name, in)
	}
}

// resolve follows local references and lays the parts of an allOf together.
func (f *filler) resolve(schema any) map[string]any {
	s, _ := schema.(map[string]any)
	for range maxDepth {
		ref, ok := s["$ref"].(string)
		if !ok || !strings.HasPrefix(ref, "#/") {
			break
		}
		at := f.root
		for _, part := range strings.Split(ref[2:], "/") {
			part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
			m, _ := at.(map[string]any)
			at = m[part]
		}
		s, _ = at.(map[string]any)
	}
	parts, _ := s["allOf"].([]any)
	if len(parts) == 0 {
		return s
	}
	merged := map[string]any{"properties": map[string]any{}, "required": []any{}}
	for _, part := range append([]any{without(s, "allOf")}, parts...) {
		for k, v := range f.resolve(part) {
			switch k {
			case "properties":
				if p, ok := v.(map[string]any); ok {
					for name, sub := range p {
						merged["properties"].(map[string]any)[name] = sub
					}
				}
			case "required":
				r, _ := v.([]any)
				merged["required"] = append(merged["required"].([]any), r...)
			default:
				merged[k] = v
			}
		}
	}
	return merged
}

func without(m map[string]any, key string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			first, _ := t[0].(string)
			return first
		}
	}
	switch {
	case s["properties"] != nil:
		return "object"
	case s["items"] != nil:
		return "array"
	default:
		return "string"
	}
}

func (f *filler) choose(options []any, in any) any {
	switch in.(type) { // only what can be compared
	case string, json.Number, bool:
		if slices.Contains(options, in) {
			return in
		}
	}
	text := strings.ToLower(f.text)
	for _, o := range options {
		if w, ok := o.(string); ok && w != "" && strings.Contains(text, strings.ToLower(w)) {
			return o
		}
	}
	return options[0]
}

func (f *filler) object(s map[string]any, in any, depth int) any {
	properties, _ := s["properties"].(map[string]any)
	from, _ := in.(map[string]any)
	required, _ := s["required"].([]any)
	out := map[string]any{}
	names := make([]string, 0, len(properties))
	for name := range properties {
		_, given := from[name]
		if given || slices.Contains(required, any(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names) // numbers are handed out in order
	for _, name := range names {
		out[name] = f.fill(properties[name], name, from[name], depth+1)
	}
	return out
}

func (f *filler) array(s map[string]any, name string, in any, depth int) any {
	given, _ := in.([]any)
	n := max(len(given), bound(s, "minItems", 0))
	if n == 0 && bound(s, "maxItems", 1) > 0 {
		n = 1
	}
	n = min(n, bound(s, "maxItems", 200), 200)
	out := make([]any, 0, n)
	for i := range n {
		var item any
		if i < len(given) {
			item = given[i]
		}
		out = append(out, f.fill(s["items"], name, item, depth+1))
	}
	return out
}

func (f *filler) number(s map[string]any, in any, integer bool) any {
	var d *apd.Decimal
	if n, ok := in.(json.Number); ok {
		d, _, _ = apd.NewFromString(n.String())
	}
	if d == nil && len(f.numbers) > 0 {
		d, f.numbers = f.numbers[0], f.numbers[1:]
	}
	if d == nil {
		d = new(apd.Decimal)
	}
	if integer {
		whole := new(apd.Decimal)
		d.Modf(whole, nil)
		d = whole
	}
	if low := decimalBound(s, "minimum"); low != nil && d.Cmp(low) < 0 {
		d = low
	}
	if high := decimalBound(s, "maximum"); high != nil && d.Cmp(high) > 0 {
		d = high
	}
	return json.Number(d.Text('f'))
}

var formats = map[string]string{
	"date": "1970-01-01", "date-time": "1970-01-01T00:00:00Z", "email": "nobody@example.com", "uri": "https://example.com/",
	"uuid": "00000000-0000-0000-0000-000000000000",
}

func (f *filler) string(s map[string]any, name string, in any) any {
	longest, shortest := bound(s, "maxLength", 200), bound(s, "minLength", 0)
	text, ok := in.(string)
	if !ok {
		text = f.text
	}
	if format, _ := s["format"].(string); format != "" {
		if format == "date" {
			if d, ok := findDate(text); ok {
				return d
			}
		}
		if fixed, ok := formats[format]; ok {
			return fixed
		}
	}
	if pattern, _ := s["pattern"].(string); pattern != "" {
		if re, err := regexp.Compile(strings.Trim(pattern, "^$")); err == nil {
			if found := re.FindString(text); found != "" {
				return found
			}
		}
	}
	text = clip(text, longest)
	if text == "" {
		text = clip(name, longest)
	}
	for utf8.RuneCountInString(text) < min(shortest, 10000) {
		text += "."
	}
	return text
}

func bound(s map[string]any, key string, otherwise int) int {
	n, ok := s[key].(json.Number)
	if !ok {
		return otherwise
	}
	i, err := n.Int64()
	if err != nil || i < 0 || i > 1<<30 {
		return otherwise
	}
	return int(i)
}

func decimalBound(s map[string]any, key string) *apd.Decimal {
	n, ok := s[key].(json.Number)
	if !ok {
		return nil
	}
	d, _, err := apd.NewFromString(n.String())
	if err != nil {
		return nil
	}
	return d
}
