package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// undeclared returns the keys of a valid instance that the schema does not declare.
func (c *compiled) undeclared(instance any) []Issue {
	d := &declarations{compiled: c, keys: map[uintptr]map[string]bool{}, seen: map[visit]*evaluated{}}
	d.apply(c.root, instance, nil)
	return d.missing(nil, instance, "")
}

// declarations applies the schemas to a valid instance once more and notes which keys they declare.
type declarations struct {
	*compiled
	keys map[uintptr]map[string]bool // by object of the instance
	seen map[visit]*evaluated
}

// visit is a schema applied to an array or object. Every node of a decoded instance is its own.
type visit struct {
	schema *jsonschema.Schema
	node   uintptr
}

// evaluated is what unevaluatedProperties and unevaluatedItems leave alone. It differs from what is declared:
// additionalProperties true evaluates keys and declares none.
type evaluated struct {
	allKeys  bool
	keys     map[string]bool
	allItems bool
	items    map[int]bool
}

func (e *evaluated) add(other *evaluated) {
	e.allKeys = e.allKeys || other.allKeys
	e.allItems = e.allItems || other.allItems
	maps.Copy(e.keys, other.keys)
	maps.Copy(e.items, other.items)
}

// scope is the way to a schema, outermost first, as $dynamicRef needs it.
type scope []*jsonschema.Schema

// apply notes what s declares in v, which is valid against s, and returns what s evaluates of v itself.
func (d *declarations) apply(s *jsonschema.Schema, v any, way scope) *evaluated {
	nothing := &evaluated{}
	if s == nil || s.Always != nil || size(v) == 0 { // true declares nothing, and only members are declared
		return nothing
	}
	d.steps.take(v)
	at := visit{schema: s, node: reflect.ValueOf(v).Pointer()}
	if !d.dynamic {
		if known := d.seen[at]; known != nil {
			return known
		}
	}
	way = append(slices.Clip(way), s)
	e := &evaluated{keys: map[string]bool{}, items: map[int]bool{}}
	object, isObject := v.(map[string]any)
	array, isArray := v.([]any)
	if isObject {
		d.properties(s, object, at.node, way, e)
	}
	if isArray {
		d.items(s, array, way, e)
	}
	d.inPlace(s, v, way, e)
	if s.UnevaluatedProperties != nil && isObject && !e.allKeys {
		for name, member := range object {
			if !e.keys[name] {
				d.rest(s.UnevaluatedProperties, at.node, name, member, way)
			}
		}
		e.allKeys = true
	}
	if s.UnevaluatedItems != nil && isArray && !e.allItems {
		for i, item := range array {
			if !e.items[i] {
				d.apply(s.UnevaluatedItems, item, way)
			}
		}
		e.allItems = true
	}
	d.seen[at] = e
	return e
}

func (d *declarations) declare(node uintptr, name string) {
	if d.keys[node] == nil {
		d.keys[node] = map[string]bool{}
	}
	d.keys[node][name] = true
}

// rest applies the schema of additionalProperties or unevaluatedProperties to a member. It declares the key only if it
// is explicit.
func (d *declarations) rest(s *jsonschema.Schema, node uintptr, name string, member any, way scope) {
	if e, ok := s.Extensions[extensionName].(*extension); s.Always != nil || ok && e.empty {
		return
	}
	d.declare(node, name)
	d.apply(s, member, way)
}

func (d *declarations) properties(s *jsonschema.Schema, v map[string]any, node uintptr, way scope, e *evaluated) {
	for name, sub := range s.Properties {
		if member, ok := v[name]; ok {
			e.keys[name] = true
			d.declare(node, name)
			d.apply(sub, member, way)
		}
	}
	for pattern, sub := range s.PatternProperties {
		for name, member := range v {
			if pattern.MatchString(name) {
				e.keys[name] = true
				d.declare(node, name)
				d.apply(sub, member, way)
			}
		}
	}
	if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		for name, member := range v {
			if !e.keys[name] {
				d.rest(sub, node, name, member, way)
			}
		}
	}
	e.allKeys = e.allKeys || s.AdditionalProperties != nil
}

func (d *declarations) items(s *jsonschema.Schema, v []any, way scope, e *evaluated) {
	first, rest := s.PrefixItems, s.Items2020
	switch old := s.Items.(type) { // before draft 2020-12
	case *jsonschema.Schema:
		rest = old
	case []*jsonschema.Schema:
		first = old
		rest, _ = s.AdditionalItems.(*jsonschema.Schema)
		if _, ok := s.AdditionalItems.(bool); ok {
			e.allItems = true
		}
	}
	for i, item := range v {
		switch {
		case i < len(first):
			e.items[i] = true
			d.apply(first[i], item, way)
		case rest != nil:
			e.allItems = true
			d.apply(rest, item, way)
		}
		if s.Contains != nil && d.valid(s.Contains, item, way) {
			if s.ContainsEval {
				e.items[i] = true
			}
			d.apply(s.Contains, item, way)
		}
	}
}

// inPlace applies the schemas that s applies to the same value.
func (d *declarations) inPlace(s *jsonschema.Schema, v any, way scope, e *evaluated) {
	for _, sub := range slices.Concat([]*jsonschema.Schema{s.Ref, recursive(s, way), d.dynamicTarget(s, way)}, s.AllOf) {
		e.add(d.apply(sub, v, way))
	}
	for _, sub := range slices.Concat(d.holding(s.AnyOf, v, way), d.holding(s.OneOf, v, way)) {
		e.add(d.apply(sub, v, way))
	}
	if s.If != nil {
		// The library takes then and else out of the dynamic scope around them, and what is valid is for it to say.
		if d.valid(s.If, v, way) {
			e.add(d.apply(s.If, v, way))
			e.add(d.apply(s.Then, v, nil))
		} else {
			e.add(d.apply(s.Else, v, nil))
		}
	}
	object, ok := v.(map[string]any)
	if !ok {
		return
	}
	for name, sub := range s.DependentSchemas {
		if _, ok := object[name]; ok {
			e.add(d.apply(sub, v, way))
		}
	}
	for name, sub := range s.Dependencies {
		if _, ok := object[name]; ok {
			if sub, ok := sub.(*jsonschema.Schema); ok {
				e.add(d.apply(sub, v, way))
			}
		}
	}
}

// recursive resolves $recursiveRef of draft 2019-09.
func recursive(s *jsonschema.Schema, way scope) *jsonschema.Schema {
	if s.RecursiveRef != nil && s.RecursiveRef.RecursiveAnchor {
		for _, outer := range way {
			if outer.RecursiveAnchor {
				return outer
			}
		}
	}
	return s.RecursiveRef
}

// dynamicTarget resolves $dynamicRef as the library does: the outermost schema on the way that holds another schema
// with the same anchor decides.
func (d *declarations) dynamicTarget(s *jsonschema.Schema, way scope) *jsonschema.Schema {
	target := s.DynamicRef
	if target == nil {
		return nil
	}
	if e, ok := s.Extensions[extensionName].(*extension); !ok || e.dynamicAnchor == "" || e.dynamicAnchor != target.DynamicAnchor {
		if ok {
			return target
		} // a meta-schema: all its references are to its anchor
	}
	for _, outer := range way {
		for _, anchor := range d.anchors {
			inside := anchor == outer || strings.HasPrefix(anchor.Location, outer.Location+"/")
			if inside && anchor.DynamicAnchor == target.DynamicAnchor && anchor != target {
				return anchor
			}
		}
	}
	return target
}

// missing adds the outermost keys in v that nothing declares, in order of pointer, until there are enough.
func (d *declarations) missing(issues []Issue, v any, pointer string) []Issue {
	if len(issues) == MaxIssues {
		return issues
	}
	switch v := v.(type) {
	case map[string]any:
		declared := d.keys[reflect.ValueOf(v).Pointer()]
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := canonical.AppendPointer(pointer, name)
			if declared[name] {
				issues = d.missing(issues, v[name], at)
			} else if len(issues) < MaxIssues {
				issues = append(issues, Issue{Pointer: at, Rule: RuleUndeclared, Message: "The schema does not declare this key."})
			}
		}
	case []any:
		for i, item := range v {
			issues = d.missing(issues, item, canonical.AppendIndex(pointer, i))
		}
	}
	return issues
}
