package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// file lays the YAML text over cfg. The syntax tree is walked here, and not decoded by the library, so that file and
// environment read a value by the same function and every complaint has a path and a line.
func (l *loader) file(cfg *Config, name string, text []byte) {
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		// The library's own text quotes the lines around the error, where a password may stand.
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			l.problems = append(l.problems, fmt.Sprintf("%s:%d: %s", name, at.GetToken().Position.Line, at.GetMessage()))
			return
		}
		l.problems = append(l.problems, name+": not readable as YAML")
		return
	}
	docs := 0
	for _, doc := range tree.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if docs++; docs > 1 {
			l.problems = append(l.problems, fmt.Sprintf("%s:%d: holds more than one document", name, line(doc.Body)))
			return
		}
		w := walker{loader: l, name: name}
		w.value(doc.Body, reflect.ValueOf(cfg).Elem(), "")
	}
}

type walker struct {
	*loader
	name string
}

func (w *walker) value(n ast.Node, dst reflect.Value, path string) {
	w.origins[path] = fmt.Sprintf("%s:%d", w.name, line(n))
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		w.problem(path, "anchors, aliases and tags are not supported")
		return
	case *ast.NullNode:
		w.problem(path, "has no value; leave the key out for its default")
		return
	}
	switch {
	case isScalar(dst.Type()):
		w.scalar(n, dst, path)
	case dst.Kind() == reflect.Struct:
		w.mapping(n, dst, path)
	case dst.Kind() == reflect.Slice:
		w.sequence(n, dst, path)
	}
}

func (w *walker) mapping(n ast.Node, dst reflect.Value, path string) {
	m, ok := n.(ast.MapNode)
	if !ok {
		w.problem(path, "must be a mapping of keys")
		return
	}
	fields := fieldsOf(dst.Type())
	for it := m.MapRange(); it.Next(); {
		key := keyText(it.Key())
		at := join(path, key)
		w.origins[at] = fmt.Sprintf("%s:%d", w.name, line(it.Key()))
		f, known := fields[key]
		if !known {
			w.problem(at, "unknown key")
			continue
		}
		w.value(it.Value(), dst.Field(f), at)
	}
}

func (w *walker) sequence(n ast.Node, dst reflect.Value, path string) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		w.problem(path, "must be a list")
		return
	}
	list := reflect.MakeSlice(dst.Type(), len(s.Values), len(s.Values))
	for i, v := range s.Values {
		if p, ok := list.Index(i).Addr().Interface().(*Provider); ok {
			*p = defaultProvider()
		}
		w.value(v, list.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	dst.Set(list)
}

func (w *walker) scalar(n ast.Node, dst reflect.Value, path string) {
	var text string
	switch n := n.(type) {
	case *ast.StringNode:
		text = n.Value
	case *ast.LiteralNode:
		text = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		// The token, not the node's value: that one went through a double.
		text = strings.TrimSpace(n.GetToken().Value)
	default:
		w.problem(path, "must be a single value")
		return
	}
	if err := setScalar(dst, text); err != nil {
		w.problem(path, "%v", err)
	}
}

func keyText(k ast.Node) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(k.GetToken().Value)
}

func line(n ast.Node) int {
	if m, ok := n.(ast.MapNode); ok {
		// A mapping's own token is its first colon.
		if it := m.MapRange(); it.Next() {
			n = it.Key()
		}
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}
