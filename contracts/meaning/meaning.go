// Package meaning holds the assertions of contract cases: CEL expressions over the input of a case and the output that came
// for it.
//
// It imports internal/canonical and nothing else of this module.
package meaning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"github.com/docket-gateway/docket/internal/canonical"
)

// Bounds of one assertion.
const (
	MaxLength  = 4096 // of an expression, in bytes
	MaxProblem = 200  // of what Check says, in characters
)

// ErrNotBool says that an assertion came out as something that is neither true nor false, so nothing can be said about the output.
var ErrNotBool = errors.New("the assertion does not give true or false")

// Assertion is one compiled CEL expression. It is safe for concurrent use.
type Assertion struct{ *compiled }

type compiled struct {
	expr      string
	ast       *cel.Ast
	functions []function      // that it calls
	loops     map[int64]int64 // what a round of each loop costs, by the id of the loop's condition
}

// Compile reads an expression over the variables input and output. An error names the place. An expression that is known to be
// neither true nor false is one too.
func Compile(expr string) (Assertion, error) {
	if len(expr) > MaxLength {
		return Assertion{}, fmt.Errorf("the expression has %d bytes, more than %d", len(expr), MaxLength)
	}
	if !utf8.ValidString(expr) {
		return Assertion{}, errors.New("the expression is not UTF-8")
	}
	env, err := environment()
	if err != nil {
		return Assertion{}, err
	}
	checked, issues := env.Compile(expr)
	if issues.Err() != nil {
		return Assertion{}, located(issues)
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return Assertion{}, fmt.Errorf("at line 1, column 1: %w, but a value of the type %s", ErrNotBool, t)
	}
	c := &compiled{expr: expr, ast: checked, loops: map[int64]int64{}}
	if err := c.measure(env); err != nil {
		return Assertion{}, err
	}
	if _, err := c.program(&meter{}); err != nil {
		return Assertion{}, fmt.Errorf("at line 1, column 1: %w", err)
	}
	return Assertion{c}, nil
}

// measure finds out what of an expression is to be counted.
func (c *compiled) measure(env *cel.Env) error {
	names := map[string]bool{}
	ast.PostOrderVisit(c.ast.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() { //nolint:exhaustive // the others call nothing
		case ast.CallKind:
			names[x.AsCall().FunctionName()] = true
		case ast.ComprehensionKind:
			loop := x.AsComprehension()
			c.loops[loop.LoopCondition().ID()] = parts(loop.LoopCondition()) + parts(loop.LoopStep())
		}
	}))
	for name, declared := range env.Functions() {
		if !names[name] {
			continue
		}
		overloads, err := declared.Bindings()
		if err != nil {
			return fmt.Errorf("the function %s: %w", name, err)
		}
		for _, o := range overloads {
			c.functions = append(c.functions, function{name, o})
		}
	}
	return nil
}

// parts counts the parts of an expression.
func parts(x ast.Expr) int64 {
	var n int64
	ast.PostOrderVisit(x, ast.NewExprVisitor(func(ast.Expr) { n++ }))
	return n
}

// program is made for each evaluation: cel-go gives a function nothing that tells one evaluation from another.
func (c *compiled) program(m *meter) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	counted := make([]*functions.Overload, len(c.functions))
	for i, f := range c.functions {
		counted[i] = m.counted(f)
	}
	return env.Program(c.ast, cel.EvalOptions(cel.OptTrackState), cel.CustomDecoratorV2(m.decorate(c.loops)),
		cel.Functions(counted...)) //nolint:staticcheck,wrapcheck // declared they are; this is for one program. The caller says where.
}

// maxIssues bounds the mistakes that an error names.
const maxIssues = 3

func located(issues *cel.Issues) error {
	var parts []string
	for _, e := range issues.Errors() {
		if len(parts) == maxIssues {
			break
		}
		parts = append(parts, fmt.Sprintf("at line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
	}
	return errors.New(strings.Join(parts, "; "))
}

// String is the expression as it was written.
func (a Assertion) String() string {
	if a.compiled == nil {
		return ""
	}
	return a.expr
}

// Check returns "" if the assertion holds for the JSON texts, else in at most MaxProblem characters what its parts came out as. What
// cannot be evaluated for this output, say since a key is not there or it is more than MaxWork, does not hold: a gate must not stay
// open for it. The error is ErrNotBool, or the cause of the ctx, whose end ends the evaluation, or says that the input cannot be read.
func (a Assertion) Check(ctx context.Context, input, output json.RawMessage) (problem string, err error) {
	return a.check(ctx, MaxWork, input, output)
}

func (a Assertion) check(ctx context.Context, steps int64, input, output json.RawMessage) (problem string, err error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx) //nolint:wrapcheck // the caller knows it
	}
	in, err := fromJSON(input)
	if err != nil {
		return "", fmt.Errorf("the input: %w", err)
	}
	out, err := fromJSON(output)
	if err != nil {
		return shorten("cannot be evaluated: the output: "+err.Error(), MaxProblem), nil //nolint:nilerr // that is what is said
	}
	program, err := a.program(newMeter(ctx, steps))
	if err != nil {
		return "", err
	}
	result, details, err := program.Eval(map[string]any{"input": in, "output": out})
	if cancelled := (interpreter.EvalCancelledError{}); errors.As(err, &cancelled) && cancelled.Cause == interpreter.ContextCancelled {
		return "", context.Cause(ctx) //nolint:wrapcheck // the caller knows it
	}
	if err != nil {
		return a.explain(details.State(), "cannot be evaluated: "+err.Error()), nil //nolint:nilerr // that is what is said
	}
	holds, ok := result.(types.Bool)
	switch {
	case !ok:
		return "", fmt.Errorf("%w: %s gives the %s %s", ErrNotBool, a.expr, result.Type().TypeName(), show(result, MaxProblem))
	case bool(holds):
		return "", nil
	}
	return a.explain(details.State(), ""), nil
}

// fromJSON keeps every number exactly.
func fromJSON(raw []byte) (any, error) {
	if err := canonical.CheckNumbers(raw); err != nil {
		return nil, err //nolint:wrapcheck // the caller says what was read
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return convert(v), nil
}

func convert(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = convert(v[k])
		}
	case []any:
		for i := range v {
			v[i] = convert(v[i])
		}
	case json.Number:
		return number(v)
	}
	return v
}
