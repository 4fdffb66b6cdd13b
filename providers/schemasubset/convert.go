package schemasubset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxNesting ends schemas that are nothing but nesting.
const maxNesting = 100

type converter struct {
	rules      Rules
	defs       map[string]*node
	properties int
	enums      int
	names      int
	unionTypes int
	refs       []*node
	unions     []*node
	optional   []*property
}

func (c *converter) problem(at, format string, args ...any) error {
	return &Error{Mode: c.rules.Name, Pointer: at, Problem: fmt.Sprintf(format, args...)}
}

// schema reads one schema. depth counts the objects around it.
func (c *converter) schema(s gjson.Result, at string, depth int) (*node, error) {
	if !s.IsObject() {
		return nil, c.problem(at, "takes anything or nothing, which has no form")
	}
	if strings.Count(at, "/") > 2*maxNesting {
		return nil, c.problem(at, "is nested too deep")
	}
	n := &node{at: at}
	seen := map[string]bool{}
	var err error
	s.ForEach(func(k, v gjson.Result) bool {
		key := k.String()
		if seen[key] {
			err = c.problem(at, "has the key %q twice", key)
			return false
		}
		seen[key] = true
		err = c.keyword(n, key, v, at+"/"+escape(key), depth)
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return n, c.finish(n, s)
}

// keyword reads one key of a schema.
func (c *converter) keyword(n *node, key string, v gjson.Result, at string, depth int) (err error) {
	keep := func(raw string) { n.members = append(n.members, member{key, raw}) }
	switch key {
	case "type":
		for _, w := range list(v) {
			n.kinds = append(n.kinds, w.String())
		}
		if v.IsArray() {
			c.unionTypes++
		}
		keep(v.Raw)
	case "enum", "const":
		n.valued = true
		n.values = append(n.values, v)
		if key == "enum" {
			n.values = v.Array()
			c.enums += len(n.values)
		}
		for _, e := range n.values {
			c.names += utf8.RuneCountInString(e.String())
		}
		keep(v.Raw)
	case "properties":
		n.object = true
		keep("")
		if c.rules.MaxDepth > 0 && depth >= c.rules.MaxDepth {
			return c.problem(at, "has more than %d objects inside of each other", c.rules.MaxDepth)
		}
		v.ForEach(func(k, s gjson.Result) bool {
			p := &property{name: k.Raw, key: k.String()}
			c.properties++
			c.names += utf8.RuneCountInString(p.key)
			if slices.ContainsFunc(n.props, func(o *property) bool { return o.key == p.key }) {
				err = c.problem(at, "has the key %q twice", p.key)
				return false
			}
			p.node, err = c.schema(s, at+"/"+escape(p.key), depth+1)
			n.props = append(n.props, p)
			return err == nil
		})
	case "required": // see finish
	case "additionalProperties", "unevaluatedProperties":
		// true and {} declare no key, and keys that nothing declares are refused in any case; so both are as good as false.
		if v.IsBool() || v.IsObject() && len(v.Map()) == 0 {
			return nil
		}
		return c.problem(at, "allows properties without a name of their own, which has no form")
	case "items":
		keep("")
		n.items, err = c.schema(v, at, depth)
	case "anyOf", "oneOf":
		if n.anyOf != nil {
			return c.problem(at, "stands beside another choice, which has no form")
		}
		key = "anyOf" // oneOf's "and no other" is left to our own validation
		keep("")
		n.anyOf = []*node{}
		for i, s := range v.Array() {
			b, err := c.schema(s, fmt.Sprintf("%s/%d", at, i), depth)
			if err != nil {
				return err
			}
			n.anyOf = append(n.anyOf, b)
		}
		c.unions = append(c.unions, n)
	case "$ref":
		n.ref = v.String()
		c.refs = append(c.refs, n)
		keep(v.Raw)
	case "$defs":
		if n.at != "" {
			return c.problem(at, "is not at the root, where alone definitions have a form")
		}
		keep("")
		v.ForEach(func(k, s gjson.Result) bool {
			c.names += utf8.RuneCountInString(k.String())
			c.defs["#/$defs/"+escape(k.String())], err = c.schema(s, at+"/"+escape(k.String()), 0)
			return err == nil
		})
	case "format":
		if slices.Contains(c.rules.Formats, v.String()) {
			keep(v.Raw)
		}
	default:
		switch {
		case slices.Contains(c.rules.Keywords, key):
			if c.rules.Takes == nil || c.rules.Takes(key, json.RawMessage(v.Raw)) {
				keep(v.Raw)
			}
		case !slices.Contains(c.rules.Dropped, key):
			return c.problem(at, "has no form")
		}
	}
	return err
}

// finish looks at a schema as a whole.
func (c *converter) finish(n *node, s gjson.Result) error {
	has := func(key string) bool {
		return slices.ContainsFunc(n.members, func(m member) bool { return m.key == key })
	}
	switch {
	case n.ref != "" && (n.anyOf != nil || n.valued || n.object || n.items != nil || has("type")):
		return c.problem(n.at, "has rules beside $ref, which has no form")
	case n.ref != "": // a reference stands alone
		n.members = slices.DeleteFunc(n.members, func(m member) bool { return m.key != "$ref" && m.key != "$defs" })
		return nil
	case n.anyOf != nil && (n.valued || n.object || n.items != nil || has("type")):
		return c.problem(n.at, "has rules beside a choice, which has no form")
	case n.anyOf != nil:
		return nil
	}
	if !has("type") && n.valued {
		for _, v := range n.values {
			if k := kind(v); !slices.Contains(n.kinds, k) {
				n.kinds = append(n.kinds, k)
			}
		}
		raw, err := json.Marshal(n.kinds)
		if err != nil {
			return c.problem(n.at, "has values that have no form")
		}
		if len(n.kinds) == 1 {
			raw = []byte(quote(n.kinds[0]))
		}
		n.members = append([]member{{"type", string(raw)}}, n.members...)
	}
	c.listed(n)
	switch {
	case len(n.kinds) == 0:
		return c.problem(n.at, "has no type")
	case n.object && !slices.Contains(n.kinds, "object"), n.items != nil && !slices.Contains(n.kinds, "array"):
		return c.problem(n.at, "has rules for another type than its own")
	case slices.Contains(n.kinds, "array") && n.items == nil:
		return c.problem(n.at, "says nothing of the array's items")
	case n.valued && (slices.Contains(n.kinds, "object") || slices.Contains(n.kinds, "array")):
		return c.problem(n.at, "lists values that are objects or arrays, which have no form")
	case slices.Contains(n.kinds, "object"):
		return c.closed(n, s)
	}
	return nil
}

// listed writes the values of enum and const as the rules want them.
func (c *converter) listed(n *node) {
	if !n.valued {
		return
	}
	drop := func(key string) {
		n.members = slices.DeleteFunc(n.members, func(m member) bool { return m.key == key })
	}
	if i := slices.IndexFunc(n.members, func(m member) bool { return m.key == "const" }); i >= 0 && c.rules.ConstAsEnum {
		n.members[i].raw = "[" + n.members[i].raw + "]"
		drop("enum") // says less
		i = slices.IndexFunc(n.members, func(m member) bool { return m.key == "const" })
		n.members[i].key = "enum"
	}
	if c.rules.ListedKinds != nil && slices.ContainsFunc(n.values, func(v gjson.Result) bool { return !slices.Contains(c.rules.ListedKinds, kind(v)) }) {
		drop("enum")
		drop("const")
	}
}

// closed makes an object one with exactly its properties.
func (c *converter) closed(n *node, s gjson.Result) error {
	if !n.object {
		n.object = true
		n.members = append(n.members, member{key: "properties"})
	}
	for _, name := range s.Get("required").Array() {
		i := slices.IndexFunc(n.props, func(p *property) bool { return p.key == name.String() })
		if i < 0 {
			return c.problem(n.at, "requires %q, which it does not declare", name.String())
		}
		n.props[i].required = true
	}
	for _, p := range n.props {
		if !p.required {
			c.optional = append(c.optional, p)
		}
	}
	n.members = append(n.members, member{key: "required"}, member{"additionalProperties", "false"})
	return nil
}

// check looks at what can only be told of the whole: references, choices, limits.
func (c *converter) check(f *Form) error {
	for _, n := range c.refs {
		if f.target(n.ref) == nil {
			return c.problem(n.at+"/$ref", "refers to something else than the root or one of its $defs")
		}
	}
	for _, n := range c.unions {
		if err := c.choice(f, n); err != nil {
			return err
		}
	}
	if c.rules.NoRecursion {
		if n := f.recursive(); n != nil {
			return c.problem(n.at, "leads back to itself, and recursion has no form")
		}
	}
	if c.rules.OptionalCycles {
		if at, ok := f.cycle(f.root, map[*node]bool{}, map[*node]bool{}); ok {
			return c.problem(at, "contains itself by way of required properties alone")
		}
		for _, n := range f.defs {
			if at, ok := f.cycle(n, map[*node]bool{}, map[*node]bool{}); ok {
				return c.problem(at, "contains itself by way of required properties alone")
			}
		}
	}
	if c.rules.AllRequired {
		for _, p := range c.optional {
			p.absent = !f.acceptsNull(p.node)
		}
	}
	for _, l := range []struct {
		have, limit int
		what        string
	}{
		{c.properties, c.rules.MaxProperties, "properties"}, {c.enums, c.rules.MaxEnumValues, "enum values"},
		{c.names, c.rules.MaxNames, "characters of names and values"},
		{len(c.optional), c.rules.MaxOptional, "optional properties"},
		{len(c.unions) + c.unionTypes, c.rules.MaxUnions, "choices and lists of types"},
	} {
		if l.limit > 0 && l.have > l.limit {
			return c.problem("", "has %d %s, more than %d", l.have, l.what, l.limit)
		}
	}
	return nil
}

// choice makes sure that it can be told which branch an answer is of, since branches may differ in what null stands for.
func (c *converter) choice(f *Form, n *node) error {
	if len(n.anyOf) == 0 {
		return c.problem(n.at, "is a choice of nothing")
	}
	if !c.rules.AllRequired {
		return nil
	}
	leaves := f.leaves(n)
	arrays := 0
	for i, a := range leaves {
		if a.items != nil {
			arrays++
		}
		for _, b := range leaves[:i] {
			if a.object && b.object && !apart(a, b) {
				return c.problem(n.at, "is a choice of objects with the same properties, none of which has another const or enum in each")
			}
		}
	}
	if arrays > 1 {
		return c.problem(n.at, "is a choice of several arrays, which has no form")
	}
	return nil
}

// apart says whether no object fits both nodes: their properties are not the same, or one that both require has no value in
// common.
func apart(a, b *node) bool {
	if !sameKeys(a, b) {
		return true
	}
	for _, p := range a.props {
		i := slices.IndexFunc(b.props, func(q *property) bool { return q.key == p.key })
		q := b.props[i]
		if p.required && q.required && p.node.valued && q.node.valued &&
			!slices.ContainsFunc(p.node.values, func(v gjson.Result) bool { return holds(q.node, v) }) {
			return true
		}
	}
	return false
}

func sameKeys(a, b *node) bool {
	return len(a.props) == len(b.props) && !slices.ContainsFunc(a.props, func(p *property) bool {
		return !slices.ContainsFunc(b.props, func(q *property) bool { return q.key == p.key })
	})
}

// holds says whether v is one of the node's values. Numbers that are written differently are taken for the same.
func holds(n *node, v gjson.Result) bool {
	return slices.ContainsFunc(n.values, func(o gjson.Result) bool {
		if o.Type == gjson.Number && v.Type == gjson.Number {
			return o.Num == v.Num
		}
		return o.Type == v.Type && o.String() == v.String()
	})
}

// list makes a single value a list of one.
func list(v gjson.Result) []gjson.Result {
	if v.IsArray() {
		return v.Array()
	}
	return []gjson.Result{v}
}

func kind(v gjson.Result) string {
	switch v.Type {
	case gjson.Null:
		return "null"
	case gjson.True, gjson.False:
		return "boolean"
	case gjson.Number:
		return "number"
	case gjson.String:
		return "string"
	default:
		if v.IsArray() {
			return "array"
		}
		return "object"
	}
}

func escape(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }
