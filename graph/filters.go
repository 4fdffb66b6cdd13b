package graph

import (
	"reflect"
	"strings"

	"entgo.io/ent/dialect/sql"
)

// withEmptyLists makes `stateIn: []` and its like in a where-input match nothing: no value is one of none; and
// `stateNotIn: []` everything. What is generated would leave the condition out, and give all rows to a client whose own
// list happens to be empty. It returns where, which may be nil.
func withEmptyLists[W any](where *W) *W {
	refine(reflect.ValueOf(where))
	return where
}

func refine(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().Kind() == reflect.Struct:
		if predicates := v.Elem().FieldByName("Predicates"); predicates.IsValid() {
			refineFields(v.Elem(), predicates)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			refine(v.Index(i))
		}
	}
}

func refineFields(where, predicates reflect.Value) {
	for i := range where.NumField() {
		name, f := where.Type().Field(i).Name, where.Field(i)
		if strings.HasSuffix(name, "In") && f.Kind() == reflect.Slice && !f.IsNil() && f.Len() == 0 {
			p := sql.False()
			if strings.HasSuffix(name, "NotIn") {
				p = sql.Not(p)
			}
			of := reflect.ValueOf(func(s *sql.Selector) { s.Where(p) }).Convert(predicates.Type().Elem())
			predicates.Set(reflect.Append(predicates, of))
		}
		if name != "Predicates" {
			refine(f)
		}
	}
}
