package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// base is where schemas are said to be; nothing is there.
const base = "docket-schema:///"

// Compile compiles a schema. It never reads from the network or the file system. Errors name the schema and the place
// in it.
func Compile(name string, raw []byte, options ...Option) (*Schema, error) {
	if err := canonical.CheckNumbers(raw); err != nil {
		issue, _ := syntaxIssue(raw)
		return nil, fmt.Errorf("schema %q: at %q: %w", name, issue.Pointer, err)
	}
	return newSchema(name, raw, refuse, options...)
}

// Option changes how a schema is read.
type Option func(*Schema)

// AnnotateFormats makes `format` a hint, which is what the specification has by default (JSON Schema Validation 2020-12,
// section 7.2.1), in place of a rule.
func AnnotateFormats() Option { return func(s *Schema) { s.annotate = true } }

// loader returns the document at a URL.
type loader func(url string) (io.ReadCloser, error)

// refuse is the only loader outside of tests.
func refuse(url string) (io.ReadCloser, error) { return nil, &outsideError{url: url} }

func newSchema(name string, raw []byte, load loader, options ...Option) (*Schema, error) {
	s := &Schema{name: name, raw: bytes.Clone(raw), load: load}
	for _, o := range options {
		o(s)
	}
	c, err := s.pool.get(s)
	if err != nil {
		return nil, err
	}
	s.pool.put(c)
	return s, nil
}

// compiled is one compilation of a schema, for one validation at a time.
type compiled struct {
	root    *jsonschema.Schema
	steps   *steps
	at      map[string]*jsonschema.Schema // by location
	dynamic bool                          // what a schema says depends on the way to it
	anchors []*jsonschema.Schema          // with $dynamicAnchor, in order of location
	asserts map[*jsonschema.Schema]*jsonschema.Schema
}

func compile(name string, raw []byte, load loader, assertFormat bool) (c *compiled, err error) {
	location := base + url.PathEscape(name)
	doc, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("schema %q: %w", name, err)
	}
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, fmt.Errorf("schema %q cannot be compiled: %v", name, r)
		}
	}()
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	compiler.AssertFormat = assertFormat
	if !assertFormat { // the library asserts them all the same where a schema has no $schema
		for name := range jsonschema.Formats {
			compiler.Formats[name] = func(any) bool { return true }
		}
	}
	compiler.LoadURL = load
	c = &compiled{steps: &steps{left: stepsFor(0)}, at: map[string]*jsonschema.Schema{}, asserts: map[*jsonschema.Schema]*jsonschema.Schema{}}
	compiler.RegisterExtension(extensionName, nil, c.steps)
	if err := compiler.AddResource(location, bytes.NewReader(raw)); err != nil {
		return nil, fmt.Errorf("schema %q: %w", name, err)
	}
	if c.root, err = compiler.Compile(location); err != nil {
		return nil, compileError(name, location, doc, err)
	}
	c.index(c.root)
	if c.dynamic {
		// Anchors are found by name: nothing else need refer to them.
		for _, pointer := range dynamicAnchors(doc, "") {
			if anchor, err := compiler.Compile(location + "#" + pointer); err == nil {
				c.index(anchor)
			}
		}
	}
	for at, s := range c.at {
		if slices.Min([]int{s.MinProperties, s.MaxProperties, s.MinItems, s.MaxItems, s.MinContains, s.MaxContains, s.MinLength, s.MaxLength}) < -1 {
			return nil, fmt.Errorf("schema %q: at %q: a bound is too large", name, pointerOf(at))
		}
		if s.Enum != nil && len(s.Enum) == 0 { // the library would allow any value
			return nil, fmt.Errorf("schema %q: at %q: an empty enum allows no value", name, pointerOf(at))
		}
		if s.DynamicAnchor != "" {
			c.anchors = append(c.anchors, s)
		}
	}
	slices.SortFunc(c.anchors, func(a, b *jsonschema.Schema) int { return strings.Compare(a.Location, b.Location) })
	return c, nil
}

// index finds all schemas that can be reached from s.
func (c *compiled) index(s *jsonschema.Schema) {
	if s == nil || c.at[s.Location] != nil {
		return
	}
	c.at[s.Location] = s
	c.dynamic = c.dynamic || s.DynamicRef != nil || s.RecursiveRef != nil
	for _, next := range subschemas(s) {
		c.index(next)
	}
}

func subschemas(s *jsonschema.Schema) []*jsonschema.Schema {
	next := []*jsonschema.Schema{
		s.Ref, s.RecursiveRef, s.DynamicRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
		s.Items2020, s.Contains, s.UnevaluatedItems, s.ContentSchema,
	}
	next = slices.Concat(next, s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems)
	for _, sub := range s.Properties {
		next = append(next, sub)
	}
	for _, sub := range s.PatternProperties {
		next = append(next, sub)
	}
	for _, sub := range s.DependentSchemas {
		next = append(next, sub)
	}
	for _, sub := range s.Dependencies {
		next = append(next, schemasOf(sub)...)
	}
	return slices.Concat(next, schemasOf(s.AdditionalProperties), schemasOf(s.Items), schemasOf(s.AdditionalItems))
}

// schemasOf reads the library's fields that hold a schema, a list of them or something else.
func schemasOf(v any) []*jsonschema.Schema {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{v}
	case []*jsonschema.Schema:
		return v
	}
	return nil
}

// dynamicAnchors returns the places of $dynamicAnchor as URL fragments.
func dynamicAnchors(doc any, pointer string) []string {
	var places []string
	switch doc := doc.(type) {
	case map[string]any:
		if _, ok := doc["$dynamicAnchor"].(string); ok {
			places = append(places, pointer)
		}
		for name, member := range doc {
			switch name {
			case "const", "enum", "default", "examples":
				continue
			}
			places = append(places, dynamicAnchors(member, pointer+"/"+url.PathEscape(canonical.Pointer(name)[1:]))...)
		}
	case []any:
		for i, element := range doc {
			places = append(places, dynamicAnchors(element, canonical.AppendIndex(pointer, i))...)
		}
	}
	return places
}

// outsideError says that a schema refers to something that is not in it.
type outsideError struct{ url string }

func (e *outsideError) Error() string { return "refers to " + e.url }

func compileError(name, location string, doc any, err error) error {
	var outside *outsideError
	if errors.As(err, &outside) {
		place, reference := findReference(doc, "", outside.url)
		if reference == "" {
			return fmt.Errorf("schema %q: it refers to %q, which is outside of it: nothing is loaded",
				name, strings.TrimPrefix(outside.url, base))
		}
		return fmt.Errorf("schema %q: at %q: it refers to %q, which is outside of it: nothing is loaded", name, place, reference)
	}
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		for len(invalid.Causes) > 0 {
			invalid = deepest(invalid.Causes)
		}
		return fmt.Errorf("schema %q: at %q: %s", name, instancePointer(invalid.InstanceLocation), invalid.Message)
	}
	message := strings.TrimPrefix(err.Error(), "jsonschema "+location+" compilation failed: ")
	return fmt.Errorf("schema %q: %s", name, strings.ReplaceAll(message, location, ""))
}

// deepest prefers the cause that is about the innermost place: it says most.
func deepest(causes []*jsonschema.ValidationError) *jsonschema.ValidationError {
	return slices.MaxFunc(causes, func(a, b *jsonschema.ValidationError) int {
		return len(a.InstanceLocation) - len(b.InstanceLocation)
	})
}

// findReference finds the first reference in doc, by pointer, that can have led to target.
func findReference(doc any, pointer, target string) (place, reference string) {
	try := func(p string, child any) {
		if found, ref := findReference(child, p, target); ref != "" && (reference == "" || found < place) {
			place, reference = found, ref
		}
	}
	switch doc := doc.(type) {
	case map[string]any:
		for name, member := range doc {
			at := canonical.AppendPointer(pointer, name)
			ref, ok := member.(string)
			if !ok {
				try(at, member)
				continue
			}
			switch name {
			case "$ref", "$dynamicRef", "$recursiveRef", "$schema":
				path, _, _ := strings.Cut(ref, "#")
				if path != "" && strings.HasSuffix(target, strings.TrimLeft(path, "./")) && (reference == "" || at < place) {
					place, reference = at, ref
				}
			}
		}
	case []any:
		for i, element := range doc {
			try(canonical.AppendIndex(pointer, i), element)
		}
	}
	return place, reference
}

// pointerOf returns the pointer in a schema's location.
func pointerOf(location string) string {
	_, fragment, _ := strings.Cut(location, "#")
	return instancePointer(fragment)
}

// instancePointer turns the library's pointers, which are escaped for URLs too, into RFC 6901.
func instancePointer(location string) string {
	tokens := strings.Split(location, "/")
	for i, token := range tokens {
		if plain, err := url.PathUnescape(token); err == nil {
			tokens[i] = plain
		}
	}
	return strings.Join(tokens, "/")
}
