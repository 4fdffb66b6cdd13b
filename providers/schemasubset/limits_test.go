package schemasubset_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/schemasubset"
)

// flat are the rules of a mode that knows optional properties and no recursion.
var flat = schemasubset.Rules{
	Name: "flat mode", Keywords: []string{"minItems"}, MaxOptional: 2, MaxUnions: 2, NoRecursion: true,
	Takes: func(keyword string, value json.RawMessage) bool { return keyword != "minItems" || string(value) == "1" },
}

func TestOptionalStaysOptional(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["number","null"]},"c":{"$ref":"#/$defs/c"}},"required":["c"],"$defs":{"c":{"const":"x"}}}`
	f, err := schemasubset.Convert(json.RawMessage(schema), flat)
	require.NoError(t, err)
	const want = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["number","null"]},"c":{"$ref":"#/$defs/c"}},"$defs":{"c":{"type":"string","const":"x"}},"required":["c"],"additionalProperties":false}`
	require.Equal(t, want, string(f.Schema))                                             //nolint:testifylint // to the byte
	require.Equal(t, `{"a":null,"c":"x"}`, string(f.Back([]byte(`{"a":null,"c":"x"}`)))) //nolint:testifylint // to the byte
}

func TestValuesThatAreNotTakenAreLeftOut(t *testing.T) {
	t.Parallel()
	for n, kept := range map[string]bool{"1": true, "2": false} {
		f, err := schemasubset.Convert(json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"},"minItems":`+n+`}}}`), flat)
		require.NoError(t, err)
		require.Equal(t, kept, strings.Contains(string(f.Schema), "minItems"), "%s", f.Schema)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schema, want string }{
		"Optional":     {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}}}`, `has 3 optional properties, more than 2`},
		"Unions":       {`{"type":"object","required":["a","b"],"properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":["string","null"]},{"type":"number"}]}}}`, `has 3 choices and lists of types, more than 2`},
		"RootItself":   {`{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#"}}}}`, `"#" leads back to itself`},
		"OneBehind":    {`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"object","properties":{"b":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}}}`, `"#/$defs/a" leads back to itself`},
		"NotReachable": {`{"type":"object","properties":{},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `"#/$defs/a" leads back to itself`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := schemasubset.Convert(json.RawMessage(tc.schema), flat)
			require.ErrorContains(t, err, tc.want)
		})
	}
	// Twice the same is no recursion.
	_, err := schemasubset.Convert(json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"},"b":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"object","properties":{}}}}`), flat)
	require.NoError(t, err)
}
