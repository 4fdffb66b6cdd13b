package meaning

import (
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/ext"
)

// environment does not change once it is made, which takes longer than to compile an expression.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	env, err := cel.NewEnv(append(slices.Concat(conversions(), arithmetics()),
		cel.Variable("input", cel.DynType),
		cel.Variable("output", cel.DynType),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EnableMacroCallTracking(),
		cel.ParserExpressionSizeLimit(MaxLength),
		cel.ParserRecursionLimit(100),
		cel.ASTValidators(cel.ValidateRegexLiterals()),
		ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(10_000)), ext.Math(), ext.Sets(),
		// Ours take anything and say at run time what they cannot take: a number of JSON has no type before it is there.
		cel.Function("decimal", cel.Overload("decimal_dyn", []*cel.Type{cel.DynType}, cel.DynType, cel.UnaryBinding(parseDecimal))),
		cel.Function("sum", cel.Overload("sum_dyn", []*cel.Type{cel.DynType}, cel.DynType, cel.UnaryBinding(sum))),
		cel.Function("near", cel.Overload("near_dyn_dyn_dyn", []*cel.Type{cel.DynType, cel.DynType, cel.DynType}, cel.BoolType, cel.FunctionBinding(near))),
	)...)
	if err != nil {
		return nil, fmt.Errorf("the CEL environment: %w", err)
	}
	return env, nil
})

// arithmetics declares what decorate does. It keeps the checker from taking 2 * sum(l) for an int, since sum may give anything.
func arithmetics() []cel.EnvOption {
	var out []cel.EnvOption
	for operator, name := range map[string]string{operators.Add: "add", operators.Subtract: "subtract", operators.Multiply: "multiply"} {
		overloads := []cel.FunctionOpt{cel.Overload(name+"_decimal", []*cel.Type{decimalType, decimalType}, decimalType)}
		for _, t := range []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType} {
			overloads = append(overloads,
				cel.Overload(name+"_decimal_"+t.TypeName(), []*cel.Type{decimalType, t}, decimalType),
				cel.Overload(name+"_"+t.TypeName()+"_decimal", []*cel.Type{t, decimalType}, decimalType))
		}
		out = append(out, cel.Function(operator, overloads...))
	}
	return out
}
