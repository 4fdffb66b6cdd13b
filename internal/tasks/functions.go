package tasks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// functions are what templates may call; builtins are text/template's own that they may call too. None of them parses a
// template, so a job's input stays data whatever it holds. Left out are those that escape for other languages than JSON, that
// call methods, and that compare numbers, which are text here.
var (
	functions = template.FuncMap{
		"json":  encodeJSON,
		"has":   hasKey,
		"trim":  strings.TrimSpace,
		"index": index, // in place of text/template's, which takes a missing key for an empty value
	}
	builtins = []string{"and", "or", "not", "eq", "ne", "len"}
)

// write is put behind what every action prints. A template that writes its name is refused before.
const write = "write__"

// encodeJSON writes v as JSON without HTML escaping, so that <, > and & reach the model as they are.
func encodeJSON(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// hasKey reports whether the object has the key, which templates ask before they read an optional one.
func hasKey(object any, key string) bool {
	m, ok := object.(map[string]any)
	if !ok {
		return false
	}
	_, ok = m[key]
	return ok
}

// index is a value's member or element, for keys that are no identifiers.
func index(v any, keys ...any) (any, error) {
	for _, key := range keys {
		switch at := v.(type) {
		case map[string]any:
			name, ok := key.(string)
			if !ok {
				return nil, errors.New("an object's key is a text")
			}
			if v, ok = at[name]; !ok {
				return nil, fmt.Errorf("the object has no entry for key %q", name)
			}
		case []any:
			i, ok := key.(int)
			if n, isNumber := key.(json.Number); isNumber {
				var err error
				i, err = strconv.Atoi(n.String())
				ok = err == nil
			}
			if !ok || i < 0 || i >= len(at) {
				return nil, fmt.Errorf("the list of %d has no element %v", len(at), key)
			}
			v = at[i]
		default:
			return nil, errors.New("neither an object nor a list")
		}
	}
	return v, nil
}

// written is what an action prints: a text as it is, everything else as JSON. text/template would write an object as
// map[a:1] and null as <no value>.
func written(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	return encodeJSON(v)
}

// restrict refuses functions that are not offered and lets every action print by written, as html/template does with its
// escapers.
func restrict(t *template.Template) error {
	r := restriction{t}
	for _, each := range t.Templates() {
		if each.Tree == nil {
			continue
		}
		if err := r.list(each.Root); err != nil {
			return err
		}
	}
	t.Funcs(template.FuncMap{write: written})
	return nil
}

type restriction struct{ t *template.Template }

func (r restriction) list(l *parse.ListNode) error {
	if l == nil {
		return nil
	}
	for _, n := range l.Nodes {
		if err := r.node(n); err != nil {
			return err
		}
	}
	return nil
}

func (r restriction) node(n parse.Node) error {
	switch n := n.(type) {
	case *parse.ActionNode:
		if err := r.pipe(n.Pipe); err != nil {
			return err
		}
		if len(n.Pipe.Decl) == 0 {
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos,
				Args: []parse.Node{parse.NewIdentifier(write).SetTree(r.t.Tree).SetPos(n.Pos)}})
		}
	case *parse.IfNode:
		return r.branch(&n.BranchNode)
	case *parse.WithNode:
		return r.branch(&n.BranchNode)
	case *parse.RangeNode:
		return r.branch(&n.BranchNode)
	case *parse.TemplateNode:
		return r.pipe(n.Pipe)
	}
	return nil
}

func (r restriction) branch(b *parse.BranchNode) error {
	return errors.Join(r.pipe(b.Pipe), r.list(b.List), r.list(b.ElseList))
}

func (r restriction) pipe(p *parse.PipeNode) error {
	if p == nil {
		return nil
	}
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			if err := r.argument(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r restriction) argument(n parse.Node) error {
	switch n := n.(type) {
	case *parse.PipeNode:
		return r.pipe(n)
	case *parse.ChainNode:
		return r.argument(n.Node)
	case *parse.IdentifierNode:
		if functions[n.Ident] != nil || slices.Contains(builtins, n.Ident) {
			return nil
		}
		place, _ := r.t.ErrorContext(n)
		offered := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(functions)), builtins...)))
		return fmt.Errorf("template: %s: there is no function %s; templates may call %s", place, n.Ident, strings.Join(offered, ", "))
	}
	return nil
}
