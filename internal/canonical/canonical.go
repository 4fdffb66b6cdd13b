// Package canonical checks JSON text as it came in and gives it one canonical form, so that equal intents have equal
// fingerprints. Keys and strings follow RFC 8785; numbers are compared by exact decimal value instead of by way of a
// double, which RFC 8785 would round.
//
// It imports nothing of this module.
package canonical

import "errors"

// SyntaxError says where raw JSON text breaks a rule that decoders pass over in silence.
type SyntaxError struct {
	Offset  int64  // in bytes, from the start of the text
	Pointer string // RFC 6901 pointer of the value, as far as it is known
	Rule    string // one sentence, without any part of the text
}

func (e *SyntaxError) Error() string { return e.Rule }

// NumberError says which number is outside of the bounds that can be compared exactly.
type NumberError struct {
	Pointer string
	Rule    string
}

func (e *NumberError) Error() string { return e.Rule }

// Check reports the first place where raw is not one JSON text in valid UTF-8, repeats an object key or holds a lone
// surrogate. The error is a *SyntaxError.
func Check(raw []byte) error { return errors.New("canonical: not built yet") }

// Canonicalize returns the canonical form of raw. The error is a *SyntaxError or a *NumberError (an exponent beyond
// ±400, more than 1,000 digits).
func Canonicalize(raw []byte) ([]byte, error) { return nil, errors.New("canonical: not built yet") }
