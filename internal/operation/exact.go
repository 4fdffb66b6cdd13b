package operation

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// makeExact replaces the literals among the arguments of doc by variables that hold their exact values: the library
// would send numbers through int64 and float64 before any scalar saw them. Names of the added variables are none that a
// document can have.
func makeExact(doc *ast.QueryDocument, vars map[string]any) {
	n := 0
	replace := func(args ast.ArgumentList) {
		for _, arg := range args {
			if arg.Value.Kind == ast.Variable {
				continue
			}
			name := "#" + strconv.Itoa(n)
			n++
			vars[name] = exact(arg.Value, vars)
			arg.Value = &ast.Value{
				Kind: ast.Variable, Raw: name, Position: arg.Value.Position,
				Definition: arg.Value.Definition, ExpectedType: arg.Value.ExpectedType,
			}
		}
	}
	for _, op := range doc.Operations {
		eachField(op.SelectionSet, func(f *ast.Field) { replace(f.Arguments) })
	}
	for _, f := range doc.Fragments {
		eachField(f.SelectionSet, func(f *ast.Field) { replace(f.Arguments) })
	}
}

// exact is a literal as a client would have sent it in JSON, numbers as json.Number, with the variables in it.
func exact(v *ast.Value, vars map[string]any) any {
	switch v.Kind {
	case ast.Variable:
		return vars[v.Raw]
	case ast.IntValue, ast.FloatValue:
		return json.Number(v.Raw) // both languages write numbers alike
	case ast.StringValue, ast.BlockValue, ast.EnumValue:
		return v.Raw
	case ast.BooleanValue:
		return v.Raw == "true"
	case ast.NullValue:
		return nil
	case ast.ListValue:
		list := make([]any, len(v.Children))
		for i, child := range v.Children {
			list[i] = exact(child.Value, vars)
		}
		return list
	case ast.ObjectValue:
		object := make(map[string]any, len(v.Children))
		for _, child := range v.Children {
			if child.Value.Kind == ast.Variable {
				if _, ok := vars[child.Value.Raw]; !ok {
					continue // a variable that is left out leaves its field out
				}
			}
			object[child.Name] = exact(child.Value, vars)
		}
		return object
	}
	panic(fmt.Sprintf("unknown kind of value %d", v.Kind))
}

// eachField visits the fields of a selection set, not those of the fragments that it names.
func eachField(set ast.SelectionSet, visit func(*ast.Field)) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			visit(s)
			eachField(s.SelectionSet, visit)
		case *ast.InlineFragment:
			eachField(s.SelectionSet, visit)
		}
	}
}
