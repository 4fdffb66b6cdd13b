package graph

import (
	"context"
	"reflect"
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/99designs/gqlgen/graphql"
)

// asWritten makes a where-input mean what it says, where what is generated would leave a condition out and give all rows:
//
//   - `stateIn: []` and `or: []` match nothing, as no value is one of none; `stateNotIn: []` and `and: []` everything.
//   - `hasAttemptsWith: []` asks for an attempt and nothing of it, as `hasAttempts: true` does.
//   - `errorCodeIsNil: false` is `errorCodeNotNil: true`, and the other way round. The where-input has false for one that is
//     left out as well, so that the argument itself is looked at.
//
// It returns where, which may be nil. ctx is that of the field whose argument `where` it is.
func asWritten[W any](ctx context.Context, where *W) *W {
	arguments := graphql.GetFieldContext(ctx).Field.ArgumentMap(graphql.GetOperationContext(ctx).Variables)
	refine(reflect.ValueOf(where), arguments["where"])
	return where
}

// refine goes through what was decoded, v, and what it was decoded from.
func refine(v reflect.Value, from any) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct:
		if predicates := v.Elem().FieldByName("Predicates"); predicates.IsValid() {
			given, _ := from.(map[string]any)
			refineFields(v.Elem(), predicates, given)
		}
	case v.Kind() == reflect.Slice:
		list := reflect.ValueOf(from)
		for i := range v.Len() {
			item := from // one value may stand for a list of one
			if list.Kind() == reflect.Slice {
				item = list.Index(i).Interface()
			}
			refine(v.Index(i), item)
		}
	}
}

func refineFields(where, predicates reflect.Value, given map[string]any) {
	add := func(p *sql.Predicate) {
		of := reflect.ValueOf(func(s *sql.Selector) { s.Where(p) }).Convert(predicates.Type().Elem())
		predicates.Set(reflect.Append(predicates, of))
	}
	for i := range where.NumField() {
		field, f := where.Type().Field(i), where.Field(i)
		name := field.Name
		argument, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "Predicates":
			continue
		case f.Kind() == reflect.Slice && !f.IsNil() && f.Len() == 0:
			switch edge, isEdge := strings.CutSuffix(name, "With"); {
			case name == "And", strings.HasSuffix(name, "NotIn"):
				add(sql.Not(sql.False()))
			case name == "Or", strings.HasSuffix(name, "In"):
				add(sql.False())
			case isEdge:
				if has := where.FieldByName(edge); has.IsNil() {
					has.Set(reflect.ValueOf(new(true)))
				} else if !has.Elem().Bool() {
					add(sql.False()) // none, and one
				}
			}
		case f.Kind() == reflect.Bool && isFalse(given[argument]):
			if of, ok := strings.CutSuffix(name, "IsNil"); ok {
				where.FieldByName(of + "NotNil").SetBool(true)
			} else if of, ok := strings.CutSuffix(name, "NotNil"); ok {
				where.FieldByName(of + "IsNil").SetBool(true)
			}
		}
		refine(f, given[argument])
	}
}

// isFalse tells false from null and from what is left out.
func isFalse(v any) bool {
	b, ok := v.(bool)
	return ok && !b
}
