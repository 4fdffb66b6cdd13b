package meaning

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// Lengths within a problem, in characters.
const (
	maxPart  = 60 // of a part's text
	maxValue = 80 // of what it came out as
)

// explain says what the parts of an assertion that does not hold came out as.
func (c *compiled) explain(state interpreter.EvalState, why string) string {
	e := explanation{info: c.ast.NativeRep().SourceInfo(), state: state}
	if why != "" {
		e.said = append(e.said, shorten(why, MaxProblem))
	}
	e.visit(c.ast.NativeRep().Expr())
	if len(e.said) == 0 {
		return "it is false"
	}
	return shorten(strings.Join(e.said, "; "), MaxProblem)
}

type explanation struct {
	info  *ast.SourceInfo
	state interpreter.EvalState // of a comprehension: what its last step came to
	said  []string
}

// visit explains an expression that came out as false, or not at all.
func (e *explanation) visit(x ast.Expr) {
	if macro, ok := e.info.GetMacroCall(x.ID()); ok {
		e.macro(x, macro.AsCall())
		return
	}
	if x.Kind() != ast.CallKind {
		e.part(x)
		return
	}
	call := x.AsCall()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		for _, a := range call.Args() {
			if v, ok := e.value(a); ok && v != types.True {
				e.visit(a)
			}
		}
	case operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		for _, a := range call.Args() {
			e.visit(a)
		}
	default:
		if call.IsMemberFunction() {
			e.part(call.Target())
		}
		for _, a := range call.Args() {
			e.part(a)
		}
	}
}

// macro explains all by the element where it stopped, the others by what they went over.
func (e *explanation) macro(x ast.Expr, call ast.CallExpr) {
	switch call.FunctionName() {
	case operators.Has:
		e.part(x)
	case operators.All:
		before := len(e.said)
		if args := call.Args(); len(args) > 1 {
			e.visit(args[len(args)-1])
		}
		if len(e.said) == before {
			e.part(call.Target())
		}
	default:
		if call.IsMemberFunction() {
			e.part(call.Target())
			return
		}
		e.part(x)
	}
}

// part says what one expression came out as, unless it is the same for every output or was not needed.
func (e *explanation) part(x ast.Expr) {
	if e.constant(x) {
		return
	}
	v, ok := e.value(x)
	if !ok || types.IsError(v) {
		// What it is made of says more than nothing.
		if x.Kind() == ast.CallKind {
			e.visit(x)
		}
		return
	}
	text, err := cel.ExprToString(x, e.info)
	if err != nil {
		return
	}
	said := fmt.Sprintf("%s is %s", shorten(text, maxPart), show(v, maxValue))
	if !slices.Contains(e.said, said) {
		e.said = append(e.said, said)
	}
}

func (e *explanation) value(x ast.Expr) (ref.Val, bool) {
	v, ok := e.state.Value(x.ID())
	return v, ok && v != nil
}

// constant says that no variable is in an expression.
func (e *explanation) constant(x ast.Expr) bool {
	if macro, ok := e.info.GetMacroCall(x.ID()); ok {
		call := macro.AsCall()
		return (!call.IsMemberFunction() || e.constant(call.Target())) && call.FunctionName() != operators.Has
	}
	constant := true
	ast.PostOrderVisit(x, ast.NewExprVisitor(func(x ast.Expr) {
		constant = constant && x.Kind() != ast.IdentKind && x.Kind() != ast.UnspecifiedExprKind && x.Kind() != ast.ComprehensionKind
	}))
	return constant
}

// show writes a value as JSON, cut after n characters.
func show(v ref.Val, n int) string {
	w := writer{left: 4*n + 4}
	w.value(v)
	return shorten(w.String(), n)
}

// writer stops where nobody would see any more.
type writer struct {
	strings.Builder
	left int // bytes
}

func (w *writer) text(s string) {
	if len(s) > w.left {
		s = s[:w.left]
	}
	w.left -= len(s)
	w.WriteString(s)
}

func (w *writer) quoted(s string) {
	if len(s) > w.left {
		s = strings.ToValidUTF8(s[:w.left], "")
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err == nil {
		w.text(strings.TrimSuffix(b.String(), "\n"))
	}
}

func (w *writer) value(v ref.Val) {
	if w.left <= 0 {
		return
	}
	switch v := v.(type) {
	case types.Null:
		w.text("null")
	case types.String:
		w.quoted(string(v))
	case types.Bool:
		w.text(strconv.FormatBool(bool(v)))
	case types.Int:
		w.text(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		w.text(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		w.text(strconv.FormatFloat(float64(v), 'g', -1, 64))
	case exact:
		w.text(v.String())
	case traits.Lister:
		w.text("[")
		separator := ""
		for it := v.Iterator(); w.left > 0 && it.HasNext() == types.True; separator = ", " {
			w.text(separator)
			w.value(it.Next())
		}
		w.text("]")
	case traits.Mapper:
		var keys []string
		values := map[string]ref.Val{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			name := show(key, maxPart)
			keys = append(keys, name)
			values[name] = v.Get(key)
		}
		slices.Sort(keys)
		w.text("{")
		separator := ""
		for _, key := range keys {
			w.text(separator + key + ": ")
			w.value(values[key])
			separator = ", "
		}
		w.text("}")
	default:
		w.text(v.Type().TypeName())
	}
}

// shorten cuts a text to n characters, and makes one line of it.
func shorten(s string, n int) string {
	if len(s) > 4*n+4 {
		s = strings.ToValidUTF8(s[:4*n+4], "")
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
