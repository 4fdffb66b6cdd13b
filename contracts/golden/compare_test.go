package golden_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/docket-gateway/docket/contracts/golden"
)

func mode(t require.TestingT, text string) golden.Mode {
	m, err := golden.ParseMode("", text)
	require.NoError(t, err)
	return m
}

func TestParseMode(t *testing.T) {
	t.Parallel()
	for pointer, text := range map[string]string{"": "exact", "/a": "subset", "/a~1b/~0/0": "structure"} {
		m, err := golden.ParseMode(pointer, text)
		require.NoError(t, err)
		require.Equal(t, golden.Mode{Kind: golden.Kind(text)}, m)
	}
	for text, want := range map[string]string{"tolerance:0": "0", "tolerance:0.005": "0.005", "tolerance:1e18": "1000000000000000000", "tolerance:1e-400": "1e-400"} {
		m, err := golden.ParseMode("/a", text)
		require.NoError(t, err)
		require.Equal(t, golden.ModeTolerance, m.Kind)
		require.True(t, decimal.RequireFromString(want).Equal(m.Tolerance))
	}
	for _, pointer := range []string{"a", "a/b", "/~", "/~2", "#/a"} {
		_, err := golden.ParseMode(pointer, "exact")
		require.ErrorContains(t, err, "not a JSON pointer", pointer)
	}
	for _, text := range []string{"", "Exact", "same", "tolerance", "tolerance "} {
		_, err := golden.ParseMode("/a", text)
		require.ErrorContains(t, err, "must be exact, subset, structure or tolerance:<number>", text)
	}
	for _, number := range []string{"", "-0.1", "NaN", "Inf", "1e19", "0x1p-2", "1_0", "1e-999999999", "1e999999999", " 1", "[]", "a"} {
		_, err := golden.ParseMode("/a", "tolerance:"+number)
		require.ErrorContains(t, err, "the tolerance must be a number", number)
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	const text = `{"a": [{"b/c": 1.50}, null], "": {"~1": true}, "0": 9007199254740993}`
	for pointer, want := range map[string]string{
		"/a/0/b~1c": "1.50", "/a/1": "null", "//~01": "true", "/0": "9007199254740993", "": text, "/a/0": `{"b/c": 1.50}`,
	} {
		got, ok := golden.At([]byte(text), pointer)
		require.True(t, ok, pointer)
		require.JSONEq(t, want, string(got))
		if !strings.HasPrefix(want, "{") {
			require.Equal(t, want, string(got), "as it was written")
		}
	}
	for _, pointer := range []string{"/b", "/a/2", "/a/-1", "/a/00", "/a/+1", "/a/-", "/a/0/b~1c/d", "/a/x"} {
		_, ok := golden.At([]byte(text), pointer)
		require.False(t, ok, pointer)
	}
	_, ok := golden.At([]byte(`{} {}`), "")
	require.False(t, ok)
}

func TestCompare(t *testing.T) {
	t.Parallel()
	type differences = []golden.Difference
	for _, tc := range []struct {
		name, mode, pointer, want, output string
		differences                       differences
	}{
		{"exact", "exact", "/a", `{"b": [1, "x", null]}`, `{"a": {"b": [1, "x", null]}, "c": 1}`, nil},
		{"exact has no order of keys", "exact", "", `{"a": 1, "b": 2}`, `{"b": 2, "a": 1}`, nil},
		{"exact takes numbers by value", "exact", "/a", `1.50`, `{"a": 15e-1}`, nil},
		{"exact keeps every digit", "exact", "/a", `9007199254740993`, `{"a": 9007199254740992}`, differences{{"/a", "9007199254740993", "9007199254740992"}}},
		{"exact goes down to the place", "exact", "/a", `{"b": [1, {"c": "x"}], "d": 1}`, `{"a": {"b": [1, {"c": "y"}], "e": 2}}`,
			differences{{"/a/b/1/c", `"x"`, `"y"`}, {"/a/d", "1", "nothing"}, {"/a/e", "nothing", "2"}}},
		{"exact has an order of elements", "exact", "", `[1, 2]`, `[2, 1, 3]`, differences{{"/0", "1", "2"}, {"/1", "2", "1"}, {"/2", "nothing", "3"}}},
		{"exact misses elements", "exact", "", `[1, 2]`, `[1]`, differences{{"/1", "2", "nothing"}}},
		{"exact knows types", "exact", "", `1`, `"1"`, differences{{"", "1", `"1"`}}},
		{"exact knows null from false", "exact", "", `null`, `false`, differences{{"", "null", "false"}}},
		{"exact knows objects from arrays", "exact", "", `{}`, `[]`, differences{{"", "{}", "[]"}}},
		{"nothing is there", "exact", "/a/b", `1`, `{"a": {}}`, differences{{"/a/b", "1", "nothing"}}},
		{"null is something", "exact", "/a", `null`, `{"a": null}`, nil},
		{"no JSON", "exact", "/a", `1`, `a`, differences{{"/a", "1", "no JSON"}}},
		{"a golden that is none", "exact", "/a", `x`, `{"a": 1}`, differences{{"/a", "a golden that is JSON", "one that is not"}}},

		{"subset lets more be there", "subset", "", `{"a": {"b": 1}}`, `{"a": {"b": 1.0, "c": 2}, "d": 3}`, nil},
		{"subset misses keys", "subset", "", `{"a": {"b": 1}}`, `{"a": {"c": 1}}`, differences{{"/a/b", "1", "nothing"}}},
		{"subset compares values", "subset", "", `{"a": "x"}`, `{"a": "y"}`, differences{{"/a", `"x"`, `"y"`}}},
		{"subset knows types", "subset", "", `{"a": []}`, `{"a": {}}`, differences{{"/a", "[]", "{}"}}},
		{"subset of an array in any order", "subset", "", `[3, 1]`, `[1, 2, 3.0]`, nil},
		{"subset needs an element for each", "subset", "", `[1, 1]`, `[1, 2]`, differences{{"/1", "1 somewhere in the array", "nothing like it"}}},
		{"subset of an empty array", "subset", "", `[]`, `[1]`, nil},
		{"subset of less", "subset", "", `[1]`, `[]`, differences{{"/0", "1 somewhere in the array", "nothing like it"}}},
		// Taking the first that fits would leave nothing for the second.
		{"subset gives up an element for another", "subset", "", `[{"a": 1}, {"a": 1, "b": 2}]`, `[{"a": 1, "b": 2}, {"a": 1}]`, nil},
		{"subset gives up elements in a row", "subset", "", `[{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}]`, `[{"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 1}, {"a": 1}]`, nil},
		{"subset goes into arrays of arrays", "subset", "", `[[1], [2, 3]]`, `[[3, 2, 1], [1]]`, nil},

		{"tolerance", "tolerance:0.01", "/a", `1.50`, `{"a": 1.51}`, nil},
		{"tolerance the other way", "tolerance:0.01", "/a", `1.50`, `{"a": 1.49}`, nil},
		{"beyond the tolerance", "tolerance:0.01", "/a", `1.50`, `{"a": 1.5100000000000000001}`, differences{{"/a", "1.50 ± 0.01", "1.5100000000000000001"}}},
		{"no tolerance", "tolerance:0", "", `100`, `1e2`, nil},
		{"a double would lose it", "tolerance:0.1", "", `0.3`, `0.4`, nil},
		{"a string is no number", "tolerance:1", "", `1`, `"1"`, differences{{"", "1 ± 1", `"1"`}}},
		{"a golden that is no number", "tolerance:1", "", `"1"`, `1`, differences{{"", "a golden that is a number", `"1"`}}},
		{"a number out of bounds", "tolerance:1", "", `1`, `1e999999999`, differences{{"", "1 ± 1", "1e999999999"}}},

		{"numbers out of bounds are not compared", "exact", "", `1e500`, `1e500`, differences{{"", "1e500", "1e500"}}},

		{"structure has no value", "structure", "/a", `1`, `{}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.differences, golden.Compare(mode(t, tc.mode), tc.pointer, json.RawMessage(tc.want), []byte(tc.output)))
		})
	}

	t.Run("ShowsLittleOfMuch", func(t *testing.T) {
		t.Parallel()
		long := `"` + strings.Repeat("ä", 1000) + `"`
		d := golden.Compare(mode(t, "exact"), "", json.RawMessage(long), []byte(`{}`))
		require.Equal(t, 121, utf8.RuneCountInString(d[0].Expected))
		require.True(t, strings.HasSuffix(d[0].Expected, "…"))
		require.Equal(t, "{}", d[0].Got)
	})
}

// TestSubsetFindsAMatchingIfThereIsOne tries every way to give each element of the golden one of its own.
func TestSubsetFindsAMatchingIfThereIsOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		element := rapid.Custom(func(t *rapid.T) map[string]int {
			out := map[string]int{}
			for _, k := range []string{"a", "b", "c"} {
				if rapid.Bool().Draw(t, k) {
					out[k] = rapid.IntRange(0, 1).Draw(t, k+" is")
				}
			}
			return out
		})
		want, got := rapid.SliceOfN(element, 0, 4).Draw(t, "want"), rapid.SliceOfN(element, 0, 5).Draw(t, "got")
		rawWant, err := json.Marshal(want)
		require.NoError(t, err)
		rawGot, err := json.Marshal(got)
		require.NoError(t, err)
		unmatched := golden.Compare(mode(t, "subset"), "", rawWant, rawGot)
		require.Len(t, unmatched, len(want)-most(want, got, make([]bool, len(got))))
	})
}

// most is how many of want find an element of got of their own, at best.
func most(want, got []map[string]int, taken []bool) int {
	if len(want) == 0 {
		return 0
	}
	best := most(want[1:], got, taken)
	for j := range got {
		fits := !taken[j]
		for k, v := range want[0] {
			other, ok := got[j][k]
			fits = fits && ok && other == v
		}
		if fits {
			taken[j] = true
			best = max(best, 1+most(want[1:], got, taken))
			taken[j] = false
		}
	}
	return best
}

// A model chooses its keys, and a report is read at a terminal.
func TestLineSteersNoTerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, `/\u001b[2J\u000a  ok\u0007\u009b\u202e\u2028`, golden.Line("/\x1b[2J\n  ok\a\u009b\u202e\u2028"))
	require.Equal(t, "/größe/👍", golden.Line("/größe/👍"))
	out := golden.Compare(golden.Mode{Kind: golden.ModeExact}, "/a", []byte(`"x"`), []byte(`{"a": "\u009b2J\u007f"}`))
	require.Equal(t, []golden.Difference{{Pointer: "/a", Expected: `"x"`, Got: `"\u009b2J\u007f"`}}, out)
}
