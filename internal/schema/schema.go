// Package schema validates task input and output against JSON Schema (draft 2020-12) and finds undeclared keys.
//
// It imports internal/canonical and nothing else of this module.
package schema

import "errors"

// Schema is a compiled JSON Schema, safe for concurrent use.
type Schema struct{}

// Issue is one broken rule.
type Issue struct {
	Pointer string // RFC 6901 pointer into the instance
	Rule    string // the schema keyword, or "undeclared" or "syntax"
	Message string // one sentence, without the offending value
}

// Compile compiles a schema. It never reads from the network or the file system.
func Compile(name string, raw []byte) (*Schema, error) {
	return nil, errors.New("schema: not built yet")
}

// Validate returns what raw breaks of the schema, none if it is valid.
func (s *Schema) Validate(raw []byte) []Issue { return nil }

// ValidateOutput is Validate and, at every level, a refusal of keys that the schema does not declare (invariant I13).
func (s *Schema) ValidateOutput(raw []byte) []Issue { return nil }
