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
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"github.com/docket-gateway/docket/internal/canonical"
)

// Bounds of one assertion.
const (
	MaxLength  = 4096    // of an expression, in bytes
	MaxSteps   = 200_000 // of all loops of one evaluation
	MaxProblem = 200     // of what Check says, in characters
)

// ErrNotBool says that an assertion came out as something that is neither true nor false, so nothing can be said about the output.
var ErrNotBool = errors.New("the assertion does not give true or false")

// Assertion is one compiled CEL expression. It is safe for concurrent use.
type Assertion struct{ *compiled }

type compiled struct {
	expr    string
	ast     *cel.Ast
	program cel.Program
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
	ast, issues := env.Compile(expr)
	if issues.Err() != nil {
		return Assertion{}, located(issues)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return Assertion{}, fmt.Errorf("at line 1, column 1: %w, but a value of the type %s", ErrNotBool, t)
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptTrackState), cel.CustomDecoratorV2(decorate), cel.InterruptCheckFrequency(MaxSteps))
	if err != nil {
		return Assertion{}, fmt.Errorf("at line 1, column 1: %w", err)
	}
	return Assertion{&compiled{expr, ast, program}}, nil
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

// ended is for cel-go, which looks at every MaxSteps-th step of a loop whether its context has ended: so that one ends there, whatever
// the machine's speed. cel-go's own limit, by cost, takes time that grows with the square of the steps.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Check returns "" if the assertion holds for the JSON texts, else in at most MaxProblem characters what its parts came out as. What
// cannot be evaluated for this output, say since a key is not there, does not hold: a gate must not stay open for it. The error is
// ErrNotBool, or says that the input cannot be read.
func (a Assertion) Check(input, output json.RawMessage) (problem string, err error) {
	in, err := fromJSON(input)
	if err != nil {
		return "", fmt.Errorf("the input: %w", err)
	}
	out, err := fromJSON(output)
	if err != nil {
		return shorten("cannot be evaluated: the output: "+err.Error(), MaxProblem), nil //nolint:nilerr // that is what is said
	}
	result, details, err := a.program.ContextEval(ended, map[string]any{"input": in, "output": out})
	if err != nil {
		return a.explain(details.State(), "cannot be evaluated: "+reason(err)), nil
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

func reason(err error) string {
	if errors.Is(err, interpreter.InterruptError{}) {
		return "it is too much work for this output"
	}
	return err.Error()
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
