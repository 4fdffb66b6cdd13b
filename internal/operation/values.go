package operation

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// strict refuses variables that the library would silently turn into another type: a number given as a String, a
// string given as an Int, an enum's value in another case. What is missing or null is checked by the library.
func strict(schema *ast.Schema, typ *ast.Type, value any, path ast.Path) *gqlerror.Error {
	if value == nil {
		return nil
	}
	if typ.Elem != nil {
		list, ok := value.([]any)
		if !ok { // one value may stand for a list of one
			return strict(schema, typ.Elem, value, path)
		}
		for i, item := range list {
			if err := strict(schema, typ.Elem, item, at(path, ast.PathIndex(i))); err != nil {
				return err
			}
		}
		return nil
	}
	def := schema.Types[typ.NamedType]
	ok := true
	switch {
	case def == nil:
	case def.Kind == ast.InputObject:
		object, isObject := value.(map[string]any)
		if !isObject {
			ok = false
			break
		}
		for _, f := range def.Fields {
			if field, given := object[f.Name]; given {
				if err := strict(schema, f.Type, field, at(path, ast.PathName(f.Name))); err != nil {
					return err
				}
			}
		}
	case def.Kind == ast.Enum:
		name, isString := value.(string)
		ok = isString && def.EnumValues.ForName(name) != nil
	default:
		ok = fits(typ.NamedType, value)
	}
	if !ok {
		err := fail(CodeValidationFailed, "the value is no %s", typ.NamedType)
		err.Path = path
		return err
	}
	return nil
}

func fits(scalar string, value any) bool {
	switch scalar {
	case "String":
		_, ok := value.(string)
		return ok
	case "Boolean":
		_, ok := value.(bool)
		return ok
	case "Int":
		n, ok := value.(json.Number)
		if ok {
			_, err := strconv.ParseInt(n.String(), 10, 32)
			ok = err == nil
		}
		return ok
	case "ID":
		if n, ok := value.(json.Number); ok {
			return !strings.ContainsAny(n.String(), ".eE")
		}
		_, ok := value.(string)
		return ok
	}
	return true
}

func at(path ast.Path, e ast.PathElement) ast.Path {
	return append(path[:len(path):len(path)], e)
}

// checkFilters bounds the where-inputs of the operation, which nest without end: each level may become a subquery.
func (e *Executor) checkFilters(op *graphql.OperationContext) (err *gqlerror.Error) {
	visit := func(f *ast.Field) {
		if f.Definition == nil {
			return
		}
		for _, arg := range f.Arguments {
			def := f.Definition.Arguments.ForName(arg.Name)
			if err != nil || def == nil || !strings.HasSuffix(def.Type.Name(), "WhereInput") {
				continue
			}
			depth, size := filterShape(op.Variables[arg.Value.Raw])
			switch l := e.options.Limits; {
			case depth > l.Filter:
				err = fail(CodeFilterTooDeep, "a filter is nested more than %d levels deep", l.Filter)
			case size > l.FilterSize:
				err = fail(CodeFilterTooLarge, "a filter has more than %d parts", l.FilterSize)
			default:
				err = checkTexts(op.Variables[arg.Value.Raw])
			}
		}
	}
	for _, o := range op.Doc.Operations {
		eachField(o.SelectionSet, visit)
	}
	for _, f := range op.Doc.Fragments {
		eachField(f.SelectionSet, visit)
	}
	return err
}

// maxFilterText is in bytes. No identifier is longer, and SQLite refuses patterns of 50,000.
const maxFilterText = 1000

// checkTexts refuses what databases read otherwise than it was meant: SQLite ends a pattern at a NUL, PostgreSQL refuses it.
func checkTexts(v any) *gqlerror.Error {
	switch v := v.(type) {
	case string:
		if len(v) > maxFilterText {
			return fail(CodeFilterTooLarge, "a text in a filter is longer than %d bytes", maxFilterText)
		}
		if strings.ContainsRune(v, 0) {
			return fail(CodeValidationFailed, "a text in a filter cannot hold NUL")
		}
	case map[string]any:
		for _, child := range v {
			if err := checkTexts(child); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range v {
			if err := checkTexts(child); err != nil {
				return err
			}
		}
	}
	return nil
}

// filterShape counts levels of objects, and objects and list items altogether.
func filterShape(v any) (depth, size int) {
	switch v := v.(type) {
	case map[string]any:
		for _, child := range v {
			d, s := filterShape(child)
			depth, size = max(depth, d), size+s
		}
		return depth + 1, size + 1
	case []any:
		for _, child := range v {
			d, s := filterShape(child)
			depth, size = max(depth, d), size+s+1
		}
	}
	return depth, size
}
