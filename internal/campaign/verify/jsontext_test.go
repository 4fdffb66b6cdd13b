package verify_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

func TestSameJSON(t *testing.T) {
	t.Parallel()
	for _, e := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[2]}`, `{ "b" : [2.0], "a" : 1e0 }`, true},
		{`100`, `1e2`, true},
		{`1200.50`, `12005e-1`, true},
		{`-0`, `0`, true},
		{`0.0e5`, `0`, true},
		{`1e400`, `10e399`, true},
		{`"<a>"`, `"\u003ca\u003e"`, true},
		{`9007199254740993`, `9007199254740992`, false},
		{`0.1`, `0.1000000000000000055`, false},
		{`1`, `-1`, false},
		{`1`, `10`, false},
		{`1`, `"1"`, false},
		{`null`, `{}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`not json`, `not json`, true},
		{`not json`, `not  json`, false},
		{`1 2`, `1`, false},
		{`1e99999999999999999999`, `1e99999999999999999998`, false},
	} {
		require.Equal(t, e.same, verify.SameJSON(json.RawMessage(e.a), json.RawMessage(e.b)), "%s and %s", e.a, e.b)
	}
	require.True(t, verify.SameJSON(nil, nil))
	require.False(t, verify.SameJSON(nil, json.RawMessage(`null`)))
	require.False(t, verify.SameJSON(nil, json.RawMessage{}))
}

func TestMarksIn(t *testing.T) {
	t.Parallel()
	text := `mark-1x"mark-22x mark-x mark- mark-3 mark-mark-4xmark-5xx Mark-6x\nmark-007xmark-1.x mark-1/2x mark-1:x mark-8`
	require.Equal(t, []string{"mark-1x", "mark-22x", "mark-4x", "mark-5x", "mark-007x"}, slices.Collect(verify.MarksIn(text)))
	for first := range verify.MarksIn(text) {
		require.Equal(t, "mark-1x", first)
		break
	}
}
