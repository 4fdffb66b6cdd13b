package canonical

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCanonicalizeValue(t *testing.T) {
	t.Parallel()

	got, err := CanonicalizeValue(map[string]any{
		"b": []any{json.Number("1.0"), 1, int64(-2), uint64(math.MaxUint64), 0.1, true, nil},
		"a": "\"\\\x01é",
	})
	require.NoError(t, err)
	//nolint:testifylint // byte for byte is the point
	require.Equal(t, `{"a":"\"\\\u0001é","b":[1,1,-2,18446744073709551615,0.1,true,null]}`, string(got))
}

func TestCanonicalizeValueRefuses(t *testing.T) {
	t.Parallel()

	deep := any(nil)
	for range MaxDepth + 1 {
		deep = []any{deep}
	}
	for name, tc := range map[string]struct {
		v    any
		want error
	}{
		"BrokenUTF8":       {map[string]any{"a/b": []any{"\xff"}}, &SyntaxError{Offset: -1, Pointer: "/a~1b/0", Rule: ruleUTF8}},
		"BrokenUTF8InKeys": {[]any{map[string]any{"\xff": 1}}, &SyntaxError{Offset: -1, Pointer: "/0", Rule: ruleUTF8}},
		"OtherTypes":       {[]any{struct{}{}}, &SyntaxError{Offset: -1, Pointer: "/0", Rule: ruleType}},
		"NoNumber":         {json.Number("1x"), &SyntaxError{Offset: -1, Rule: ruleNumber}},
		"EmptyNumber":      {json.Number(""), &SyntaxError{Offset: -1, Rule: ruleNumber}},
		"NumberInSpace":    {json.Number(" 1"), &SyntaxError{Offset: -1, Rule: ruleNumber}},
		"Infinity":         {[]any{0, math.Inf(1)}, &NumberError{Pointer: "/1", Rule: ruleFloat}},
		"BigExponent":      {map[string]any{"n": json.Number("1e401")}, &NumberError{Pointer: "/n", Rule: ruleExponent}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := CanonicalizeValue(tc.v)
			require.Equal(t, tc.want, err)
		})
	}

	var syntax *SyntaxError
	_, err := CanonicalizeValue(deep)
	require.ErrorAs(t, err, &syntax)
	require.Equal(t, ruleDepth, syntax.Rule)
}

func TestPointer(t *testing.T) {
	t.Parallel()

	require.Empty(t, Pointer())
	require.Equal(t, "/a~1b/m~0n/", Pointer("a/b", "m~n", ""))
	require.Equal(t, "/x/~01", AppendPointer("/x", "~1"))
	require.Equal(t, "/x/12", AppendIndex("/x", 12))
}
