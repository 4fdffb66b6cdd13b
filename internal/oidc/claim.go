package oidc

import (
	"slices"
	"strconv"
	"strings"
)

// Claim is what the tokens of operators have and no others.
type Claim struct {
	Name  string // of a claim; or, if it begins with /, a JSON pointer into the claims, such as /realm_access/roles
	Value string
}

// in reports whether the claims have it: as a string, a boolean, an element of a list, or, in scope and scp, a word.
func (c Claim) in(claims map[string]any) bool {
	if c.Name == "" || c.Value == "" {
		return false
	}
	path := []string{c.Name}
	if rest, ok := strings.CutPrefix(c.Name, "/"); ok {
		path = strings.Split(rest, "/")
		for i := range path {
			path[i] = strings.ReplaceAll(strings.ReplaceAll(path[i], "~1", "/"), "~0", "~")
		}
	}
	var value any = claims
	for _, name := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return false
		}
		value = object[name]
	}
	switch value := value.(type) {
	case string:
		// Both are lists of words by their definition; a space in any other claim may be a person's own.
		if name := path[len(path)-1]; name == "scope" || name == "scp" {
			return slices.Contains(strings.Fields(value), c.Value)
		}
		return value == c.Value
	case bool:
		return strconv.FormatBool(value) == c.Value
	case []any:
		return slices.Contains(value, any(c.Value))
	}
	return false
}
