package meaning

import (
	"context"
	"math/bits"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// MaxWork bounds one evaluation, in steps: a part of an expression within a loop, an element that is looked at and 16 bytes of a text
// are one each. All that an evaluation does is counted before it is done, so it ends after well under a second on an idle machine.
const MaxWork = 2_000_000

// tooMuch is what is said of more.
var tooMuch = "it is too much work for this output, more than " + strconv.Itoa(MaxWork) + " steps"

const (
	perText  = 16     // bytes of a text that are a step
	perLook  = 10_000 // steps between two looks at whether the evaluation is wanted still
	perZone  = 500    // steps for the name of a time zone, which is looked up in files
	perRegex = 8      // steps for a byte of a regular expression, which is compiled each time
)

// meter counts the work of one evaluation. cel-go's own count comes after a call, which may never end, and is made in time that grows
// with the square of the steps.
type meter struct {
	stopped func() error
	left    int64
	look    int64 // how much is left at the next look
}

func newMeter(ctx context.Context, steps int64) *meter {
	return &meter{stopped: ctx.Err, left: steps, look: steps}
}

// charge ends the evaluation as cel-go does: no operator gets to see it, where || would take an error for an answer.
func (m *meter) charge(steps int64) {
	if m.left -= steps; m.left < 0 {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: tooMuch})
	}
	if m.left <= m.look {
		m.look = m.left - perLook
		if err := m.stopped(); err != nil {
			panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: err.Error()})
		}
	}
}

// times is a*b, or more than any evaluation may take.
func times(a, b int64) int64 {
	if high, low := bits.Mul64(uint64(a), uint64(b)); high == 0 && low <= MaxWork {
		return int64(low)
	}
	return MaxWork + 1
}

// width is how much there is in a value without what the elements of a list or map hold.
func width(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return 1 + int64(len(v))/perText
	case types.Bytes:
		return 1 + int64(len(v))/perText
	case exact:
		return 1 + int64(v.Coefficient().BitLen())/64 + max(int64(v.Exponent()), -int64(v.Exponent()))/perText
	case traits.Lister:
		return 1 + elements(v)
	case traits.Mapper:
		return 1 + elements(v)
	}
	return 1
}

func elements(v traits.Sizer) int64 {
	n, _ := v.Size().(types.Int)
	return int64(n)
}

// deep is how much there is in a value with all that it holds, as often as it holds it, and how many lists and maps are within each
// other. It stops at more than what is left.
func (m *meter) deep(v ref.Val) (size, nested int64) {
	return deep(v, m.left)
}

func deep(v ref.Val, left int64) (size, nested int64) {
	add := func(v ref.Val) bool {
		s, n := deep(v, left-size)
		size, nested = size+s, max(nested, n+1)
		return size <= left
	}
	switch v := v.(type) {
	case traits.Lister:
		size = 1
		for it := v.Iterator(); size <= left && it.HasNext() == types.True; {
			add(it.Next())
		}
		return size, nested
	case traits.Mapper:
		size = 1
		for it := v.Iterator(); size <= left && it.HasNext() == types.True; {
			if key := it.Next(); add(key) {
				add(v.Get(key))
			}
		}
		return size, nested
	}
	return width(v), 0
}

// cost is what a function will take with these arguments.
func (m *meter) cost(function string, args []ref.Val) int64 {
	if len(args) == 0 {
		return 1
	}
	switch function {
	case "size":
		if _, ok := args[0].(types.String); !ok {
			return 1
		}
	case "lists.range":
		if n, ok := args[0].(types.Int); ok && n > 0 {
			return int64(n)
		}
	case "sum":
		return m.sumCost(args[0])
	case "sort", "@sortByAssociatedKeys":
		size, _ := m.deep(args[len(args)-1])
		return width(args[0]) + times(size, 2*int64(bits.Len64(uint64(size))))
	case "distinct":
		size, _ := m.deep(args[0])
		return size + times(width(args[0]), size/2)
	case "sets.contains", "sets.intersects", "sets.equivalent":
		return m.pairs(args)
	case "flatten":
		size, nested := m.deep(args[0])
		return times(size, nested+1)
	case "format", "join":
		return m.textCost(args)
	case "matches", "replace", "split", "indexOf", "lastIndexOf":
		return m.searchCost(function, args)
	case "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds",
		"getMilliseconds":
		if len(args) > 1 {
			return perZone
		}
	}
	var all int64
	for _, arg := range args {
		all += width(arg)
	}
	return all
}

// sumCost is for decimals, of which one with many digits makes each sum after it one.
func (m *meter) sumCost(v ref.Val) int64 {
	list, ok := v.(traits.Lister)
	if !ok {
		return 1
	}
	m.charge(width(list))
	widest := int64(1)
	for it := list.Iterator(); it.HasNext() == types.True; {
		widest = max(widest, width(it.Next()))
	}
	return times(width(list), widest)
}

// pairs is for each element of one list compared with each of the other: of two values no more than the smaller is gone over.
func (m *meter) pairs(args []ref.Val) int64 {
	a, _ := m.deep(args[0])
	b, _ := m.deep(args[len(args)-1])
	return a + b + 2*min(times(width(args[0]), b), times(a, width(args[len(args)-1])))
}

func (m *meter) textCost(args []ref.Val) int64 {
	var all int64
	for _, arg := range args {
		size, _ := m.deep(arg)
		all += 2 * size
	}
	return all + times(width(args[0]), width(args[len(args)-1]))
}

func (m *meter) searchCost(function string, args []ref.Val) int64 {
	text, ok := args[0].(types.String)
	if !ok || len(args) < 2 {
		return 1
	}
	sought, _ := args[1].(types.String)
	switch function {
	case "matches":
		m.charge(perRegex * int64(len(sought)))
		size := programSize(string(sought))
		return size + times(width(text), 1+size)
	case "replace":
		m.charge(width(text))
		if len(args) > 2 {
			return times(1+int64(strings.Count(string(text), string(sought))), width(args[2]))
		}
	case "split":
		return 1 + int64(len(text))
	}
	return times(width(text), width(sought))
}

// programSize is how many instructions a regular expression becomes, 0 for none.
func programSize(expr string) int64 {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0
	}
	return int64(len(program.Inst))
}
