package schema

import (
	"reflect"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// holding returns those of a valid anyOf's or oneOf's branches that hold.
//
// To ask the library about each branch would validate the inside of v again at each level. Mostly a look at v itself
// rules all branches out but one, and that one must hold.
func (d *declarations) holding(branches []*jsonschema.Schema, v any, way scope) []*jsonschema.Schema {
	if !d.dynamic {
		branches = slices.Clone(branches)
		branches = slices.DeleteFunc(branches, func(branch *jsonschema.Schema) bool { return d.fails(branch, v) })
		if len(branches) == 1 {
			return branches
		}
	}
	var holding []*jsonschema.Schema
	for _, branch := range branches {
		if d.valid(branch, v, way) {
			holding = append(holding, branch)
		}
	}
	return holding
}

// fails says whether v breaks s in a way that shows without looking into v's arrays and objects.
func (d *declarations) fails(s *jsonschema.Schema, v any) bool {
	if s == nil {
		return false
	}
	if s.Always != nil {
		return !*s.Always
	}
	d.steps.take(v)
	if d.assertions(s).Validate(v) != nil || d.fails(s.Ref, v) {
		return true
	}
	if object, ok := v.(map[string]any); ok {
		for name, sub := range s.Properties {
			if member, ok := object[name]; ok && size(member) == 0 && sub.Validate(member) != nil {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.AllOf, func(sub *jsonschema.Schema) bool { return d.fails(sub, v) })
}

// assertions returns a copy of s without its subschemas.
func (c *compiled) assertions(s *jsonschema.Schema) *jsonschema.Schema {
	if known := c.asserts[s]; known != nil {
		return known
	}
	only := *s
	only.Ref, only.RecursiveRef, only.DynamicRef, only.Not, only.If, only.Then, only.Else = nil, nil, nil, nil, nil, nil, nil
	only.AllOf, only.AnyOf, only.OneOf, only.PrefixItems = nil, nil, nil, nil
	only.Properties, only.PatternProperties, only.AdditionalProperties, only.PropertyNames = nil, nil, nil, nil
	only.UnevaluatedProperties, only.DependentSchemas, only.Dependencies = nil, nil, nil
	only.Items, only.AdditionalItems, only.Items2020, only.Contains, only.UnevaluatedItems = nil, nil, nil, nil, nil
	only.Extensions = nil
	c.asserts[s] = &only
	return &only
}

// valid says whether v is valid against s where the way to s counts.
func (d *declarations) valid(s *jsonschema.Schema, v any, way scope) bool {
	if d.dynamic {
		s = d.behind(s, way)
	}
	return s.Validate(v) == nil
}

// behind returns a schema that says what s says at the end of way. The library has no call for it, but a copy of a
// schema keeps what the library knows of its anchors, so the way is built again from copies that ask nothing themselves.
func (d *declarations) behind(s *jsonschema.Schema, way scope) *jsonschema.Schema {
	for _, outer := range slices.Backward(way) {
		wrapper := *outer
		v := reflect.ValueOf(&wrapper).Elem()
		for i := range v.NumField() {
			switch v.Type().Field(i).Name {
			case "Location", "Draft", "RecursiveAnchor", "DynamicAnchor":
				continue
			}
			if field := v.Field(i); field.CanSet() {
				if field.SetZero(); field.Kind() == reflect.Int {
					field.SetInt(-1)
				}
			}
		}
		wrapper.AllOf = []*jsonschema.Schema{s}
		s = &wrapper
	}
	return s
}
