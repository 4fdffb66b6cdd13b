package schemasubset_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/docket-gateway/docket/internal/schema"
	"github.com/docket-gateway/docket/providers/schemasubset"
)

// shape is a schema, and the instances of it: as they are, and as a provider writes them that must write every property.
type shape struct {
	text string
	draw func(t *rapid.T) (instance, asked string)
	null bool // null is one of its instances
}

func space(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", " ", "\n\t "}).Draw(t, "space")
}

func scalar(t *rapid.T) shape {
	null := rapid.Bool().Draw(t, "null")
	kind := rapid.SampledFrom([]string{"string", "number", "boolean"}).Draw(t, "kind")
	values := map[string][]string{
		"string":  {`""`, `"null"`, `"a\u00e9\"\\,}"`, `"🖨️"`, `"\ud83d\udda8"`},
		"number":  {"0", "-0", "1.50", "12345678901234567890.10", "1e5", "1E+5"},
		"boolean": {"true", "false"},
	}[kind]
	text := quoted(kind)
	if null {
		text = "[" + text + `,"null"]`
		values = append(values, "null")
	}
	return shape{text: `{"type":` + text + `}`, null: null, draw: func(t *rapid.T) (string, string) {
		v := rapid.SampledFrom(values).Draw(t, "value")
		return v, v
	}}
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

func draw(t *rapid.T, depth int) shape {
	kinds := []string{"scalar", "enum"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "array", "choice")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "shape") {
	case "enum":
		return shape{text: `{"enum":["x","null",7]}`, draw: func(t *rapid.T) (string, string) {
			v := rapid.SampledFrom([]string{`"x"`, `"null"`, "7"}).Draw(t, "value")
			return v, v
		}}
	case "object":
		return drawObject(t, depth, "")
	case "array":
		item := draw(t, depth-1)
		return shape{text: `{"type":"array","items":` + item.text + `}`, draw: func(t *rapid.T) (string, string) {
			var a, b []string
			for range rapid.IntRange(0, 3).Draw(t, "items") {
				x, y := item.draw(t)
				s := space(t)
				a, b = append(a, s+x), append(b, s+y)
			}
			return "[" + strings.Join(a, ",") + "]", "[" + strings.Join(b, ",") + "]"
		}}
	case "choice":
		one, two := drawObject(t, depth, "one"), drawObject(t, depth, "two")
		return shape{text: `{"anyOf":[` + one.text + `,` + two.text + `,{"type":"null"}]}`, null: true, draw: func(t *rapid.T) (string, string) {
			switch rapid.IntRange(0, 2).Draw(t, "branch") {
			case 0:
				return one.draw(t)
			case 1:
				return two.draw(t)
			default:
				return "null", "null"
			}
		}}
	default:
		return scalar(t)
	}
}

// drawObject draws an object, with a constant that tells it from others if kind is not empty.
func drawObject(t *rapid.T, depth int, kind string) shape {
	type prop struct {
		name     string
		required bool
		shape    shape
	}
	var props []prop
	for i := range rapid.IntRange(0, 4).Draw(t, "properties") {
		p := prop{name: fmt.Sprintf("p%d", i), required: rapid.Bool().Draw(t, "required"), shape: draw(t, depth-1)}
		p.required = p.required || p.shape.null // null and absent cannot be told apart then, as documented
		props = append(props, p)
	}
	if kind != "" {
		c := quoted(kind)
		props = append(props, prop{"kind", true, shape{text: `{"const":` + c + `}`, draw: func(*rapid.T) (string, string) { return c, c }}})
	}
	var text, required []string
	for _, p := range props {
		text = append(text, quoted(p.name)+":"+p.shape.text)
		if p.required {
			required = append(required, quoted(p.name))
		}
	}
	return shape{
		text: `{"type":"object","properties":{` + strings.Join(text, ",") + `},"required":[` + strings.Join(required, ",") + `]}`,
		draw: func(t *rapid.T) (string, string) {
			// The pairs of the asked form in order; where one goes, its separator goes with it: the one behind it, or, at
			// the end, the one before it.
			type pair struct {
				instance, asked string
				absent          bool
			}
			var pairs []pair
			for _, p := range props {
				x, y := p.shape.draw(t)
				key := quoted(p.name) + space(t) + ":" + space(t)
				if !p.required && rapid.Bool().Draw(t, "absent") {
					pairs = append(pairs, pair{asked: key + "null", absent: true})
					continue
				}
				pairs = append(pairs, pair{instance: key + x, asked: key + y})
			}
			var a, b []string
			for _, p := range pairs {
				b = append(b, p.asked)
				if !p.absent {
					a = append(a, p.instance)
				}
			}
			open, end := "{"+space(t), space(t)+"}"
			return open + strings.Join(a, ", ") + end, open + strings.Join(b, ", ") + end
		},
	}
}

// Whatever schema and instance: what the provider writes for the instance is valid for the form, and comes back as the
// instance, to the byte.
func TestRoundTripIsIdentity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawObject(t, 3, "")
		r := rules
		r.MaxDepth, r.MaxProperties, r.MaxEnumValues, r.MaxNames = 0, 0, 0, 0
		form, err := schemasubset.Convert(json.RawMessage(s.text), r)
		require.NoError(t, err, s.text)
		original, err := schema.Compile("original", []byte(s.text))
		require.NoError(t, err)
		strict, err := schema.Compile("strict", form.Schema)
		require.NoError(t, err, string(form.Schema))
		for range 3 {
			instance, asked := s.draw(t)
			require.Empty(t, original.ValidateOutput([]byte(instance)), "%s of %s", instance, s.text)
			require.Empty(t, strict.ValidateOutput([]byte(asked)), "%s of %s", asked, form.Schema)
			require.Equal(t, instance, string(form.Back([]byte(asked))), s.text)
		}
	})
}

// Back of anything at all is JSON if that was, and does not panic.
func FuzzBack(f *testing.F) {
	form, err := schemasubset.Convert(json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"array","items":{"$ref":"#"}}}}`), rules)
	require.NoError(f, err)
	f.Add([]byte(`{"a":null,"b":[{"a":"x","b":null}]}`))
	f.Fuzz(func(t *testing.T, output []byte) {
		require.Equal(t, json.Valid(output), json.Valid(form.Back(output)))
	})
}
