// Package schemasubset turns a task's output schema into the part of JSON Schema that a provider's structured output
// takes, and the provider's answer back into one of the schema itself.
//
// What the part cannot say is an error that names the place, or is left out where that only widens what the provider may
// answer: a bound on a text's length, say. A wider form is no danger, because Docket validates every answer against the task's own
// schema. What could let the provider write something else than was meant (allOf, not, patternProperties and so on) is never
// left out.
//
// It imports nothing of this module.
package schemasubset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Rules say what a provider takes.
type Rules struct {
	Name string // of the provider's mode, for errors

	Keywords []string // passed on as they are, beside those of the structure: type, enum, const, properties, required, items, anyOf, $ref, $defs
	Dropped  []string // left out: annotations, and rules that only narrow what an answer may be
	Formats  []string // formats that are passed on; others are left out

	// Takes says of a keyword that is passed on whether this value of it is taken; else it is left out, as Dropped ones are. nil
	// takes all.
	Takes func(keyword string, value json.RawMessage) bool

	// AllRequired: each property must be required. An optional one is asked for as "or null", and Form.Back leaves it out
	// where it is null. One that may be null by itself stays as it is: it then comes as null rather than not at all.
	AllRequired bool

	// ConstAsEnum: const is not known, but an enum of one value is.
	ConstAsEnum bool
	// ListedKinds are the kinds of the values that an enum may list: string, number, boolean, null. Where others are listed the
	// list is left out, and the type alone is asked for. Nil allows all.
	ListedKinds []string
	// OptionalCycles: a schema may contain itself only by way of a property that is not required.
	OptionalCycles bool

	MaxDepth      int // objects inside of each other
	MaxProperties int // in all
	MaxEnumValues int // in all
	MaxNames      int // characters of all names of properties and definitions, and of all enum and const values
	MaxOptional   int // properties that are not required, in all; 0 is no limit, as for the others
	MaxUnions     int // choices and lists of types, in all

	NoRecursion bool // no schema may hold a reference that leads back to itself
}

// Error says what of a schema cannot be expressed, and where.
type Error struct {
	Mode    string
	Pointer string // RFC 6901 pointer into the schema
	Problem string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s cannot express the output schema: %q %s", e.Mode, "#"+e.Pointer, e.Problem)
}

// Form is a schema as a provider takes it.
type Form struct {
	Schema json.RawMessage // its keys in the order of the original
	root   *node
	defs   map[string]*node
}

// node is one schema of the original.
type node struct {
	at      string
	members []member // in order
	kinds   []string // the words of type, or of the values of enum and const where there is no type
	values  []gjson.Result
	valued  bool // enum or const
	object  bool
	props   []*property
	items   *node
	anyOf   []*node
	ref     string
}

// member is a key of a schema and its value; a value that is not there is rendered from the node.
type member struct{ key, raw string }

type property struct {
	name     string // as in the schema's text, with its quotes
	key      string
	node     *node
	required bool
	absent   bool // null stands for not being there
}

// Convert returns the schema's form by the rules, or an *Error.
func Convert(schema json.RawMessage, r Rules) (*Form, error) {
	c := &converter{rules: r, defs: map[string]*node{}}
	if !json.Valid(schema) {
		return nil, c.problem("", "is not JSON")
	}
	root, err := c.schema(gjson.ParseBytes(schema), "", 0)
	if err != nil {
		return nil, err
	}
	if root.ref != "" || root.anyOf != nil || !root.object || !slices.Equal(root.kinds, []string{"object"}) {
		return nil, c.problem("", "must be an object itself, by type and properties")
	}
	f := &Form{root: root, defs: c.defs}
	if err := c.check(f); err != nil {
		return nil, err
	}
	f.Schema = json.RawMessage(f.render(root, r))
	return f, nil
}

// acceptsNull says whether null is valid for the node.
func (f *Form) acceptsNull(n *node) bool {
	for _, leaf := range f.leaves(n) {
		if leaf.valued {
			if slices.ContainsFunc(leaf.values, func(v gjson.Result) bool { return v.Type == gjson.Null }) &&
				(len(leaf.kinds) == 0 || slices.Contains(leaf.kinds, "null")) {
				return true
			}
		} else if slices.Contains(leaf.kinds, "null") {
			return true
		}
	}
	return false
}

// leaves are what a node comes down to through $ref and anyOf.
func (f *Form) leaves(n *node) []*node {
	var list []*node
	seen := map[*node]bool{}
	var walk func(*node)
	walk = func(n *node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		switch {
		case n.ref != "":
			walk(f.target(n.ref))
		case n.anyOf != nil:
			for _, b := range n.anyOf {
				walk(b)
			}
		default:
			list = append(list, n)
		}
	}
	walk(n)
	return list
}

func (f *Form) target(ref string) *node {
	if ref == "#" {
		return f.root
	}
	return f.defs[ref]
}

// render writes the node's form.
func (f *Form) render(n *node, r Rules) string {
	var parts []string
	for _, m := range n.members {
		raw := m.raw
		if raw == "" {
			raw = f.renderMember(n, m.key, r)
		}
		parts = append(parts, quote(m.key)+":"+raw)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (f *Form) renderMember(n *node, key string, r Rules) string {
	var parts []string
	switch key {
	case "properties":
		for _, p := range n.props {
			text := f.render(p.node, r)
			if p.absent {
				text = f.renderOrNull(p.node, text, r)
			}
			parts = append(parts, p.name+":"+text)
		}
		return "{" + strings.Join(parts, ",") + "}"
	case "required":
		for _, p := range n.props {
			if p.required || r.AllRequired {
				parts = append(parts, p.name)
			}
		}
	case "anyOf":
		for _, b := range n.anyOf {
			parts = append(parts, f.render(b, r))
		}
	case "items":
		return f.render(n.items, r)
	case "$defs":
		return f.renderDefs(r)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func (f *Form) renderDefs(r Rules) string {
	var parts []string
	for ref, n := range f.defs {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.TrimPrefix(ref, "#/$defs/"))
		parts = append(parts, quote(name)+":"+f.render(n, r))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

// renderOrNull adds null to what the node takes: by its type where there is one and nothing else has a say, else as a
// further branch.
func (f *Form) renderOrNull(n *node, text string, r Rules) string {
	if len(n.kinds) == 1 && !n.valued && !n.object && n.items == nil {
		with := *n
		with.members = slices.Clone(n.members)
		for i, m := range with.members {
			if m.key == "type" {
				with.members[i].raw = `["` + n.kinds[0] + `","null"]`
			}
		}
		return f.render(&with, r)
	}
	return `{"anyOf":[` + text + `,{"type":"null"}]}`
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // not reachable: a string
	}
	return string(b)
}
