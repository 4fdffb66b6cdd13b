package golden_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/golden"
)

func structure(t *testing.T, text string) []golden.Node {
	t.Helper()
	nodes, err := golden.Structure([]byte(text))
	require.NoError(t, err)
	return nodes
}

func TestStructure(t *testing.T) {
	t.Parallel()
	require.Equal(t, []golden.Node{
		{"", "object"}, {"/a", "array"}, {"/a/[]", "null"}, {"/a/[]", "number"}, {"/a/[]", "object"}, {"/a/[]/b", "boolean"}, {"/c~1d", "string"},
	}, structure(t, `{"c/d": "x", "a": [1, 2.5, null, {"b": true}, {"b": false}]}`))
	require.Equal(t, []golden.Node{{"", "array"}}, structure(t, `[]`))
	require.Equal(t, structure(t, `[1]`), structure(t, `[40.0, 1e3]`), "an integer is a number, and a place is a place")
	require.NotEqual(t, structure(t, `{"a": {"[]": 1}}`), structure(t, `{"a": [1]}`))
	for _, text := range []string{``, `{`, `{} {}`, "```json\n{}\n```"} {
		_, err := golden.Structure([]byte(text))
		require.ErrorContains(t, err, "not JSON", text)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	want := structure(t, `{"a": 1, "b": {"c": "x"}, "lines": [{"n": 1}]}`)
	for _, tc := range []struct {
		name, got      string
		missing, extra []golden.Node
	}{
		{"the same", `{"lines": [{"n": 2}, {"n": 3}], "b": {"c": ""}, "a": 1.5}`, nil, nil},
		{"a key that is missing", `{"a": 1, "b": {}, "lines": [{"n": 1}]}`, []golden.Node{{"/b/c", "string"}}, nil},
		{"a key more, in one element", `{"a": 1, "b": {"c": "x"}, "lines": [{"n": 1}, {"n": 1, "m": 1}]}`, nil, []golden.Node{{"/lines/[]/m", "number"}}},
		{"another type", `{"a": "1", "b": {"c": "x"}, "lines": [{"n": 1}]}`, []golden.Node{{"/a", "number"}}, []golden.Node{{"/a", "string"}}},
		{"a null beside", `{"a": 1, "b": {"c": "x"}, "lines": [{"n": null}, {"n": 1}]}`, nil, []golden.Node{{"/lines/[]/n", "null"}}},
		{"an empty array", `{"a": 1, "b": {"c": "x"}, "lines": []}`, []golden.Node{{"/lines/[]", "object"}, {"/lines/[]/n", "number"}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			missing, extra := golden.Diff(want, structure(t, tc.got))
			require.Equal(t, tc.missing, missing)
			require.Equal(t, tc.extra, extra)
		})
	}
}
