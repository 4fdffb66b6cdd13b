package meaning_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/meaning"
)

// hostile is what a model might answer.
var hostile = func() json.RawMessage {
	var tags, nested strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&tags, `"%d",`, i)
	}
	nested.WriteString(strings.Repeat("[", 500) + strings.Repeat("1,", 5000) + "1" + strings.Repeat("]", 500))
	return json.RawMessage(`{"l": [` + strings.Repeat("1,", 200) + `1], "s": "` + strings.Repeat("x", 20_000) + `", "n": ` + strings.Repeat("9", 1000) +
		`, "tags": [` + tags.String() + `"x"], "nested": ` + nested.String() + `, "mixed": [` + strings.Repeat("1,", 20_000) + strings.Repeat("9", 1000) +
		`], "re": "` + strings.Repeat("(a{1000})", 3000) + `"}`)
}()

// TestBoundsTheWork has expressions that would take minutes, for ever, or gigabytes if they were let.
func TestBoundsTheWork(t *testing.T) {
	t.Parallel()
	for name, expr := range map[string]string{
		"nested loops":                 "output.l.all(a, output.l.all(b, output.l.all(c, output.l.all(d, output.l.all(e, a + b + c + d + e >= 0)))))",
		"texts that double":            "[output.s]" + strings.Repeat(".map(x, x + x)", 60) + " == []",
		"lists that double":            "[output.l]" + strings.Repeat(".map(x, x + x)", 60) + ".exists(x, x.all(y, y >= 0))",
		"decimals that grow":           "[decimal(output.n)]" + strings.Repeat(".map(x, x * x)", 60) + " == []",
		"exponents that grow":          "[decimal('1e400')]" + strings.Repeat(".map(x, x * x)", 60) + " == []",
		"a long range":                 "lists.range(20000).size() > 0",
		"ranges in a loop":             "lists.range(1000).all(x, lists.range(10000).size() > 0)",
		"distinct values":              "output.tags.distinct().size() == output.tags.size()",
		"distinct maps":                `lists.range(10000).map(x, {"a": x}).distinct().size() > 0`,
		"equality in a loop":           "lists.range(3000).all(x, output.tags == output.tags)",
		"inequality in a loop":         "!lists.range(3000).exists(x, output.tags != output.tags)",
		"equality of a tree":           "[output.l]" + strings.Repeat(".map(x, [x, x])", 30) + " == [output.l]" + strings.Repeat(".map(x, [x, x])", 30),
		"membership in a loop":         "output.tags.all(x, x in output.tags)",
		"order in a loop":              "lists.range(5000).all(x, output.s <= output.s)",
		"sorting in a loop":            "lists.range(2000).all(x, lists.range(10000).sort().size() > 0)",
		"sorting by a key":             "lists.range(2000).all(x, output.tags.sortBy(y, y).size() > 0)",
		"sets":                         "sets.contains(output.tags, output.tags)",
		"equal sets":                   "sets.equivalent(output.tags, output.tags)",
		"sets that do not meet":        "!sets.intersects(output.tags, output.mixed)",
		"a list turned over":           "lists.range(2000).all(x, output.tags.reverse().size() > 0)",
		"a list cut":                   "lists.range(2000).all(x, output.tags.slice(0, 10000).size() > 0)",
		"a deep list made flat":        "output.nested.flatten(500).size() > 0",
		"a tree made flat":             "[output.l]" + strings.Repeat(".map(x, [x, x])", 30) + ".flatten(100).size() > 0",
		"a list put together":          "size(" + strings.Repeat("output.tags + ", 90) + "[]) > 0",
		"format in a loop":             `lists.range(2000).all(x, "%s".format([output.tags]) != "")`,
		"format of a tree":             `"%s".format([output.l]` + strings.Repeat(".map(x, [x, x])", 30) + `) != ""`,
		"join in a loop":               "lists.range(2000).all(x, output.tags.join() != '')",
		"join by a long text":          "lists.range(10000).map(x, 'x').join(output.s) != ''",
		"replace by a long text":       "output.s.replace('x', output.s) != ''",
		"replace nothing":              "output.s.replace('', output.s) != ''",
		"split in a loop":              "lists.range(2000).all(x, output.s.split('').size() > 0)",
		"search in a loop":             "lists.range(2000).all(x, output.s.indexOf(output.s + 'y') < 0)",
		"a text measured in a loop":    "lists.range(10000).all(x, output.s.size() > 0)",
		"a text turned over":           "lists.range(10000).all(x, output.s.reverse() != '')",
		"an expression in a loop":      "lists.range(10000).all(x, output.s.matches('^(x+x+)+$'))",
		"an expression of the model's": "output.s.matches(output.re)",
		"sums in a loop":               "lists.range(10000).all(x, sum(output.l) > 0)",
		"a sum of long numbers":        "sum(output.mixed) > 0",
		"time zones":                   "lists.range(10000).all(x, timestamp('2026-01-01T00:00:00Z').getHours('Europe/Berlin') >= 0)",
		"an error that nobody sees":    "lists.range(3000).exists(x, output.tags != output.tags) || true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := meaning.Compile(expr)
			require.NoError(t, err)
			// What it would take is no less with fewer steps, which keep the test short.
			problem, err := a.CheckWithin(t.Context(), meaning.MaxWork/10, json.RawMessage(`{}`), hostile)
			require.NoError(t, err)
			require.Regexp(t, "^cannot be evaluated: .*(too much work for this output, more than 2000000 steps|a text or list of more than 1048576|too many digits|exceeds maximum allowed)", problem)
		})
	}
}

func TestBoundsAllOfTheWork(t *testing.T) {
	t.Parallel()
	a, err := meaning.Compile("output.tags.all(x, output.tags.all(y, x == x))")
	require.NoError(t, err)
	problem, err := a.Check(t.Context(), json.RawMessage(`{}`), hostile)
	require.NoError(t, err)
	require.Contains(t, problem, "cannot be evaluated: it is too much work for this output, more than 2000000 steps")
}

// TestWorkThatIsMeant has what authors write, for outputs of a size that comes.
func TestWorkThatIsMeant(t *testing.T) {
	t.Parallel()
	var lines, tags []string
	for i := range 1000 {
		lines = append(lines, `{"quantity": 3, "unit_price": 0.1, "amount": 0.3}`)
		tags = append(tags, fmt.Sprintf(`"tag %d"`, i))
	}
	output := json.RawMessage(`{"lines": [` + strings.Join(lines, ",") + `], "tags": [` + strings.Join(tags, ",") + `], "text": "` + strings.Repeat("word ", 20_000) + `"}`)
	for _, expr := range []string{
		"output.lines.all(l, near(decimal(l.quantity) * decimal(l.unit_price), l.amount, 0.005))",
		"sum(output.lines.map(l, l.amount)) == 300",
		"output.tags.distinct().size() == output.tags.size()",
		"output.tags.sort().size() == 1000 && output.tags.join(', ').contains('tag 7') && output.tags == output.tags",
		"output.tags.all(t, t.matches('^tag [0-9]{1,4}$'))",
		"output.text.split(' ').size() == 20001 && !output.text.matches('(?i)refund')",
	} {
		a, err := meaning.Compile(expr)
		require.NoError(t, err)
		problem, err := a.Check(t.Context(), json.RawMessage(`{}`), output)
		require.NoError(t, err)
		require.Empty(t, problem, expr)
	}
}

// ending is a context that ends while it is looked at.
type ending struct {
	context.Context
	cancel context.CancelCauseFunc
	looks  atomic.Int32
}

var errEnded = errors.New("the process is asked to stop")

func (e *ending) Err() error {
	if e.looks.Add(1) == 5 {
		e.cancel(errEnded)
	}
	return e.Context.Err()
}

func TestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a, err := meaning.Compile("output.l.all(x, output.l.all(y, x == y))")
	require.NoError(t, err)

	problem, err := a.Check(t.Context(), json.RawMessage(`{}`), hostile)
	require.NoError(t, err)
	require.Empty(t, problem)

	inner, cancel := context.WithCancelCause(t.Context())
	ctx := &ending{Context: inner, cancel: cancel}
	_, err = a.Check(ctx, json.RawMessage(`{}`), hostile)
	require.ErrorIs(t, err, errEnded)
	require.LessOrEqual(t, ctx.looks.Load(), int32(7), "it ended at the first look that could tell")

	_, err = a.Check(inner, json.RawMessage(`{}`), hostile)
	require.ErrorIs(t, err, errEnded, "nothing is begun")
}
