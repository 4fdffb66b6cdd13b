package operation

import (
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// checkLiterals refuses, in a document that is validated, what the library lets through: an Int beyond 32 bits, the
// bound that the GraphQL specification sets (3.5.1), and the name of an enum's value where a scalar is due, which would
// silently become a string. Variables are checked by strict.
func checkLiterals(doc *ast.QueryDocument) (errs gqlerror.List) {
	refuse := func(v *ast.Value, message string) {
		errs = append(errs, with(gqlerror.ErrorPosf(v.Position, "%s", message), CodeValidationFailed))
	}
	var visit func(v *ast.Value, scalar bool)
	visit = func(v *ast.Value, scalar bool) {
		if v == nil {
			return
		}
		// What is inside of a scalar's value has no type of its own.
		scalar = scalar || v.Definition != nil && v.Definition.Kind == ast.Scalar
		switch {
		case v.Kind == ast.EnumValue && scalar:
			refuse(v, "a scalar has no enum values: write a string in quotes")
		case v.Kind == ast.IntValue && v.Definition != nil && v.Definition.Name == "Int":
			if _, err := strconv.ParseInt(v.Raw, 10, 32); err != nil {
				refuse(v, "an Int must be from -2147483648 to 2147483647")
			}
		}
		for _, child := range v.Children {
			visit(child.Value, scalar)
		}
	}
	arguments := func(f *ast.Field) {
		for _, arg := range f.Arguments {
			visit(arg.Value, false)
		}
	}
	for _, op := range doc.Operations {
		for _, v := range op.VariableDefinitions {
			visit(v.DefaultValue, false)
		}
		eachField(op.SelectionSet, arguments)
	}
	for _, f := range doc.Fragments {
		eachField(f.SelectionSet, arguments)
	}
	return errs
}
