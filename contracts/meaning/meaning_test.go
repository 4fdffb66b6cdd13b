package meaning_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/meaning"
)

const (
	input  = `{"text": "Invoice 000731, 2 pages", "order": 9007199254740993}`
	output = `{
		"category": "technical", "ok": true, "note": null, "summary": "printer  is\n\"down\"", "tags": ["a", "b"],
		"total": 0.3, "whole": 5.0, "large": 12345678901234567890, "long": 0.30000000000000000001, "tiny": 1e-300, "huge": 1e400,
		"lines": [{"quantity": 3, "unit_price": 0.1, "amount": 0.3}, {"quantity": 1, "unit_price": 0.2, "amount": 0.25}],
		"prices": [0.1, 0.2], "empty": [], "inner": {"n": 1}
	}`
)

func check(t *testing.T, expr string) (string, error) {
	t.Helper()
	a, err := meaning.Compile(expr)
	require.NoError(t, err, expr)
	require.Equal(t, expr, a.String())
	return a.Check(t.Context(), json.RawMessage(input), json.RawMessage(output))
}

func TestHolds(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{
		"true",
		"output.category == 'technical' && output.ok",
		"input.text.contains('000731')",
		"output.note == null",
		"!has(output.refund)",
		"has(output.inner.n)",
		"output.tags.all(t, t in ['a', 'b'])",
		"size(output.empty) == 0",
		// Numbers: an int if it is one, whatever way it is written, and never rounded.
		"type(output.whole) == int && output.whole == 5",
		"output.whole == 5.0 && 5u == output.whole",
		"output.total == 0.3 && output.total < 1 && 1 > output.total",
		"input.order == 9007199254740993",
		"input.order != 9007199254740992",
		"output.large == decimal('12345678901234567890')",
		"decimal('12345678901234567890') == output.large",
		"12345678901234567890u == output.large",
		"output.large != 12345678901234567891u",
		"output.long != 0.3 && 0.3 != output.long && output.long > 0.3 && 0.3 < output.long",
		"output.huge > output.large && 1 < output.huge",
		"output.tiny > 0 && output.tiny == 1e-300",
		// Decimals.
		"decimal('1.10') == 1.1 && 1.1 == decimal('1.10')",
		"decimal(0.1) + 0.2 == 0.3 && 0.3 == 0.1 + decimal(0.2)",
		"0.1 + 0.2 != 0.3", // the reason for them
		"decimal(3) * output.prices[0] == output.total",
		"3 * decimal(output.prices[0]) == 0.3 && decimal(3) * 0.1 - 0.3 == 0 && 2 * sum(output.prices) == 0.6 && output.total - 0.3 == 0",
		"output.total in [decimal('0.3')] && decimal('0.3') in [output.total]",
		"[0.3] == [decimal('0.3')] && [decimal('0.3')] == [output.total]",
		"{'a': 0.3} == {'a': decimal('0.3')}",
		"!(decimal('1') == 'a') && 'a' != decimal('1')",
		"string(decimal('1.50')) == '1.5' && double(decimal('1.5')) == 1.5 && int(decimal('7')) == 7",
		"sum(output.prices) == output.total && output.total == sum(output.prices)",
		"sum(output.lines.map(l, l.amount)) == 0.55",
		"sum([]) == 0 && sum([1, 2u, 0.5, decimal('0.25')]) == 3.75",
		"near(0.1, 0.3, 0.2) && near(0.3, 0.1, 0.2)",
		"near(output.large, decimal('12345678901234567891'), 1)",
		// What authors expect to be there.
		"output.category.upperAscii() == 'TECHNICAL' && 'a-b'.split('-').size() == 2",
		"[1, 2, 2].distinct() == [1, 2] && math.greatest(1, 3) == 3 && sets.contains(output.tags, ['a'])",
		"output.category.matches('^tech')",
	} {
		t.Run(expr, func(t *testing.T) {
			t.Parallel()
			problem, err := check(t, expr)
			require.NoError(t, err)
			require.Empty(t, problem)
		})
	}
}

func TestSaysWhatThePartsCameOutAs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ expr, want string }{
		{"false", "it is false"},
		{"output.category == 'billing'", `output.category is "technical"`},
		{"'billing' == output.category", `output.category is "technical"`},
		{"output.category in ['billing', 'other']", `output.category is "technical"`},
		{"output.ok && output.category == 'billing'", `output.category is "technical"`},
		{"!output.ok || output.whole > 7", "output.ok is true; output.whole is 5"},
		{"!has(output.note)", "has(output.note) is true"},
		{"has(output.refund)", "has(output.refund) is false"},
		{"output.summary.contains('paper')", `output.summary is "printer  is\n\"down\""`},
		{"!output.summary.contains('down')", `output.summary is "printer  is\n\"down\""`},
		{"output.lines.size() == 3", "output.lines.size() is 2"},
		{"output.total == sum(output.lines.map(l, l.amount))", "output.total is 0.3; sum(output.lines.map(l, l.amount)) is 0.55"},
		{"near(output.total, 0.5, 0.1)", "output.total is 0.3"},
		// The element where it stopped.
		{"output.lines.all(l, decimal(l.quantity) * l.unit_price == l.amount)", "decimal(l.quantity) * l.unit_price is 0.2; l.amount is 0.25"},
		{"output.tags.all(t, t == 'a')", `t is "b"`},
		{"output.tags.exists(t, t == 'c')", `output.tags is ["a", "b"]`},
		{"output.inner == {'n': 2}", `output.inner is {"n": 1}`},
		{"output.long == 0.3", "output.long is 0.30000000000000000001"},
		{"output.ok ? output.category == 'billing' : true", `output.ok is true; output.category is "technical"`},
		// What cannot be evaluated does not hold.
		{"output.refund == 1", "cannot be evaluated: no such key: refund"},
		{"output.category > 1", `cannot be evaluated: no such overload; output.category is "technical"`},
		{"output.lines[7].amount > 1", "cannot be evaluated: index out of bounds: 7"},
		{"output.whole / 0 == 1", "cannot be evaluated: division by zero; output.whole is 5"},
		{"input.order * input.order > 0", "cannot be evaluated: integer overflow; input.order is 9007199254740993"},
		{"sum(output.tags) == 0", `cannot be evaluated: sum: element 0: a number is needed, not the string "a"; output.tags is ["a", "b"]`},
		{"sum(output.total) == 0", "cannot be evaluated: sum: a list is needed, not the double 0.3; output.total is 0.3"},
		{"near(output.category, 1, 1)", `cannot be evaluated: near: a number is needed, not the string "technical"; output.category is "technical"`},
		{"near(1, 1, -1)", "cannot be evaluated: near: the tolerance -1 is negative"},
		{"near(1.0 / 0.0, 1, 1)", "cannot be evaluated: near: it is not finite"},
		{"decimal('1,5') == 1", `cannot be evaluated: decimal: "1,5" is not a number`},
		{"decimal('1e999999999') > 1", `cannot be evaluated: decimal: "1e999999999" is not a number`},
		{"decimal(true) == 1", "cannot be evaluated: decimal: a number is needed, not the bool true"},
		{"decimal(1) / 3 > 0", "cannot be evaluated: decimals are added, subtracted, multiplied and compared; a division would not be exact"},
		{"decimal(1) + output.category == 1", `cannot be evaluated: a number is needed, not the string "technical"; output.category is "technical"`},
		{"decimal(1) < output.category", `cannot be evaluated: a number is needed, not the string "technical"; output.category is "technical"`},
		{"int(decimal('1.5')) == 1", "cannot be evaluated: int: the decimal 1.5 is not one"},
	} {
		t.Run(tc.expr, func(t *testing.T) {
			t.Parallel()
			problem, err := check(t, tc.expr)
			require.NoError(t, err)
			require.Equal(t, tc.want, problem)
		})
	}

	t.Run("InFewCharacters", func(t *testing.T) {
		t.Parallel()
		long := strings.Repeat("ä", 100_000)
		for _, expr := range []string{
			"output.a == output.b", "output.a == ''", "output.a.contains('x') && output.b == 1", "output.l.exists(x, x == '')",
			"output.a + output.b + output.a + output.b + output.a + output.b + output.a + output.b == ''", "output." + strings.Repeat("k", 1000) + " == 1",
		} {
			a, err := meaning.Compile(expr)
			require.NoError(t, err)
			problem, err := a.Check(t.Context(), json.RawMessage(`{}`), json.RawMessage(`{"a": "`+long+`", "b": "x`+long+`", "l": ["`+long+`"]}`))
			require.NoError(t, err)
			require.NotEmpty(t, problem)
			require.LessOrEqual(t, utf8.RuneCountInString(problem), meaning.MaxProblem)
			require.True(t, utf8.ValidString(problem))
		}
	})
}

func TestCompile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, expr, want string }{
		{"syntax", "output.a ==", "at line 1, column 12: Syntax error"},
		{"second line", "output.a == 1\n  && outptu.b == 2", "at line 2, column 6: undeclared reference to 'outptu'"},
		{"unknown function", "total(output.lines) == 1", "at line 1, column 6: undeclared reference to 'total'"},
		{"too few arguments", "near(1, 2)", "at line 1, column 5: found no matching overload for 'near'"},
		{"types that cannot fit", "1 == 'a'", "at line 1, column 3: found no matching overload"},
		{"known to be no bool", "size(output.lines)", "the assertion does not give true or false, but a value of the type int"},
		{"a text", "'true'", "but a value of the type string"},
		{"a null", "null", "but a value of the type null"},
		{"a list", "[true]", "but a value of the type list(bool)"},
		{"too long", strings.Repeat("true && ", 600) + "true", "the expression has 4804 bytes, more than 4096"},
		{"too deep", strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200), "recursion"},
		{"a regular expression too large", "output.a.matches('((a{100}){100}){10}')", "at line 1, column 18: invalid matches argument"},
		{"a regular expression that is none", "output.a.matches('(')", "at line 1, column"},
		{"no UTF-8", "output.a == '\xff'", "not UTF-8"},
		{"nothing", "", "at line 1, column"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := meaning.Compile(tc.expr)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestNeitherTrueNorFalse(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"output.category":                     `output.category gives the string "technical"`,
		"output.note":                         "output.note gives the null_type null",
		"sum(output.prices)":                  "sum(output.prices) gives the decimal 0.3",
		"output.ok ? output.whole : output.a": "gives the int 5",
	} {
		problem, err := check(t, expr)
		require.ErrorIs(t, err, meaning.ErrNotBool, expr)
		require.ErrorContains(t, err, want)
		require.Empty(t, problem)
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	a, err := meaning.Compile("output == 1")
	require.NoError(t, err)
	for _, raw := range []string{``, `{`, `1 2`, `1e401`, `{"a": 1, "a": 1}`} {
		problem, err := a.Check(t.Context(), json.RawMessage(`{}`), json.RawMessage(raw))
		require.NoError(t, err)
		require.Contains(t, problem, "cannot be evaluated: the output: ")
		_, err = a.Check(t.Context(), json.RawMessage(raw), json.RawMessage(`1`))
		require.ErrorContains(t, err, "the input: ")
	}
	problem, err := a.Check(t.Context(), json.RawMessage(`{}`), json.RawMessage(`1.0`))
	require.NoError(t, err)
	require.Empty(t, problem)
}
