// Package golden compares a model's output with what was recorded for a case.
//
// It imports internal/canonical and nothing else of this module.
package golden

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/docket-gateway/docket/internal/canonical"
)

// Node is one place of a structure: a JSON pointer, in which every array position is [], and the type that stands there. An
// integer is a number, since a model that writes 40 for 40.0 has changed nothing.
type Node struct {
	Pointer string `json:"pointer"`
	Type    string `json:"type"` // object, array, string, number, boolean or null
}

func (n Node) String() string { return n.Pointer + " " + n.Type }

// Structure returns the set of places of an output, in order of pointer and type. Output that is not one JSON text is an error.
func Structure(output []byte) ([]Node, error) {
	v, err := decode(output)
	if err != nil {
		return nil, err
	}
	seen := map[Node]bool{}
	walk(v, "", seen)
	nodes := make([]Node, 0, len(seen))
	for n := range seen {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, order)
	return nodes, nil
}

func order(a, b Node) int {
	return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Type, b.Type))
}

func walk(v any, pointer string, seen map[Node]bool) {
	seen[Node{pointer, typeOf(v)}] = true
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			walk(member, canonical.AppendPointer(pointer, key), seen)
		}
	case []any:
		for _, element := range v {
			walk(element, pointer+"/[]", seen)
		}
	}
}

func typeOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}

// Diff returns what the second structure lacks of the first and what it has beyond it.
func Diff(want, got []Node) (missing, extra []Node) {
	for _, n := range want {
		if !slices.Contains(got, n) {
			missing = append(missing, n)
		}
	}
	for _, n := range got {
		if !slices.Contains(want, n) {
			extra = append(extra, n)
		}
	}
	return missing, extra
}

// decode keeps numbers as they are written.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: something follows the value")
	}
	return v, nil
}
