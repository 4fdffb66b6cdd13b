// Package schema validates task input and output against JSON Schema (draft 2020-12) and finds undeclared keys.
//
// A schema without $schema is draft 2020-12; older drafts are taken if $schema names them. A schema is one document:
// nothing is ever loaded, so each $ref must lead to somewhere in it or to a published meta-schema. `format` is a rule
// and not a hint: a user who writes "format": "email" expects that other text is refused. AnnotateFormats makes it
// a hint. A format that is not known is no rule. Content keywords (contentEncoding and so on) are hints, as the draft has them. Patterns are Go's regular
// expressions: look-around and back-references are refused when the schema is compiled.
//
// # Undeclared keys
//
// Output must not carry a key that its schema does not declare (invariant I13), at any level. A key of an object is
// declared if a schema that applies to the object evaluates it by
//
//   - properties or patternProperties, whatever schema they give it, true and {} included;
//   - additionalProperties or unevaluatedProperties with an explicit schema. true is none, and neither is {}, which
//     means the same. A schema with anything in it is explicit, a description alone too.
//
// The schemas that apply to an object are those that are reached through $ref, $dynamicRef, allOf, dependentSchemas
// whose key is there, if when it holds, then or else as it demands, and the branches of anyOf and oneOf that hold; inside
// of arrays through items, prefixItems, unevaluatedItems, and contains where the item fits it. What stands under not or
// propertyNames declares nothing.
//
// The rule is strict: under a property that is declared as {}, true or {"type": "object"} any object is valid, but
// each key in it is undeclared, since nothing says what it means. Of an undeclared key only the key itself is reported,
// not what is inside of its value.
//
// # Limits
//
// A number with an exponent beyond ±400 or more than 1,000 digits cannot be compared exactly and is refused. Recursive
// schemas with several branches can ask for exponential work; a validation is given up after a number of steps that
// grows with the text's length, and the text is refused.
//
// It imports internal/canonical and nothing else of this module.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// MaxIssues bounds what Validate and ValidateOutput return.
const MaxIssues = 50

// Rules of issues that are not named for a keyword.
const (
	RuleSyntax     = "syntax"     // not one JSON text, a repeated key, a number out of bounds
	RuleUndeclared = "undeclared" // a key that the schema does not declare
	RuleLimit      = "limit"      // too much work, or work that could not be done: refused, not known to be wrong
)

// Issue is one broken rule.
type Issue struct {
	Pointer string // RFC 6901 pointer into the instance
	Rule    string // the schema keyword, or "undeclared", "syntax" or "limit"
	Message string // one sentence, without the offending value
}

// Schema is a compiled JSON Schema, safe for concurrent use.
type Schema struct {
	name string
	raw  json.RawMessage
	load loader
	pool pool

	annotate bool // format is a hint
}

// Raw returns a copy of the text that the schema was compiled from.
func (s *Schema) Raw() json.RawMessage { return bytes.Clone(s.raw) }

// Validate returns what raw breaks of the schema, none if it is valid: the innermost rules, ordered by pointer, at most
// MaxIssues. Where no branch of anyOf or oneOf holds, the issues of all branches follow it.
func (s *Schema) Validate(raw []byte) []Issue { return s.check(raw, false) }

// ValidateOutput is Validate and, at every level, a refusal of keys that the schema does not declare (invariant I13).
// Undeclared keys are looked for only if raw is valid otherwise: which branches apply is not known before.
func (s *Schema) ValidateOutput(raw []byte) []Issue { return s.check(raw, true) }

func (s *Schema) check(raw []byte, output bool) (issues []Issue) {
	if issue, ok := syntaxIssue(raw); !ok {
		return []Issue{issue}
	}
	instance, err := decode(raw)
	if err != nil {
		return []Issue{{Rule: RuleSyntax, Message: "The text cannot be decoded."}}
	}
	c, err := s.pool.get(s)
	if err != nil {
		return []Issue{{Rule: RuleLimit, Message: "The schema is not compiled."}}
	}
	defer s.pool.put(c)
	c.steps.start(len(raw), instance)
	defer func() {
		switch recover() {
		case nil:
		case errSteps:
			issues = []Issue{{Rule: RuleLimit, Message: "The value would take too many steps to check."}}
		default: // what cannot be checked is never valid
			issues = []Issue{{Rule: RuleLimit, Message: "The value cannot be checked."}}
		}
	}()
	if err := c.root.Validate(instance); err != nil {
		var invalid *jsonschema.ValidationError
		if errors.As(err, &invalid) {
			return c.issues(invalid, instance)
		}
		return []Issue{{Rule: RuleLimit, Message: "The schema refers to itself without end."}}
	}
	if !output {
		return nil
	}
	return c.undeclared(instance)
}

func syntaxIssue(raw []byte) (Issue, bool) {
	err := canonical.CheckNumbers(raw)
	if err == nil {
		return Issue{}, true
	}
	issue := Issue{Rule: RuleSyntax, Message: err.Error()}
	var syntax *canonical.SyntaxError
	var number *canonical.NumberError
	switch {
	case errors.As(err, &syntax):
		issue.Pointer = syntax.Pointer
	case errors.As(err, &number):
		issue.Pointer = number.Pointer
	}
	return issue, false
}

func decode(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	err := decoder.Decode(&v)
	return v, err
}
