// Package canonical checks JSON text as it came in and gives it one canonical form, so that equal intents have equal
// fingerprints. Keys and strings follow RFC 8785; numbers are compared by exact decimal value instead of by way of a
// double, which RFC 8785 would round.
//
// The canonical form is itself JSON text of the same document, and canonicalising it again changes nothing. A document
// without numbers has exactly its RFC 8785 form.
//
// # Numbers
//
// A number is written as ECMAScript would write that decimal value if it had all the digits it needs: no sign on zero,
// no superfluous zeros, plain up to 21 digits before the point and down to 0.000001, else one digit before the point
// and an exponent with its sign. An exponent beyond ±400, which only a number with many digits can reach within the
// bounds, is written as ±400 with the rest moved into the digits, so that the form keeps the bounds itself.
//
// The bounds are on the number as written: 0e401 and 0.1e401 are refused although their values would be harmless, and
// all digits before the exponent count, zeros included. What is refused must not hang on arithmetic that the writer
// cannot see.
//
// It imports nothing of this module.
package canonical

import (
	"fmt"

	"github.com/gowebpki/jcs"
)

// Bounds on what is read.
const (
	MaxDepth    = 512  // arrays and objects inside of each other
	MaxDigits   = 1000 // of one number as written, without its exponent
	MaxExponent = 400  // of one number as written, either way
)

// SyntaxError says where raw JSON text breaks a rule that decoders pass over in silence.
type SyntaxError struct {
	Offset  int64  // in bytes, from the start of the text; -1 for a Go value, which has no text
	Pointer string // RFC 6901 pointer of the value, as far as it is known; it ends early where it would pass 1 KiB
	Rule    string // one sentence, without any part of the text
}

func (e *SyntaxError) Error() string { return e.Rule }

// NumberError says which number is outside of the bounds that can be compared exactly.
type NumberError struct {
	Pointer string // RFC 6901; it ends early where it would pass 1 KiB
	Rule    string // one sentence, without any part of the text
}

func (e *NumberError) Error() string { return e.Rule }

// Check reports the first place where raw is not one JSON text in valid UTF-8, repeats an object key, holds a lone
// surrogate or is nested deeper than MaxDepth. Keys are compared after unescaping. The error is a *SyntaxError. Numbers
// may be of any size.
//
// The time is linear in len(raw); nothing recurses.
func Check(raw []byte) error {
	s := newScanner(raw)
	defer s.release()
	return s.run()
}

// CheckNumbers is Check, and refuses numbers outside of the bounds too. The error is a *SyntaxError or a *NumberError.
func CheckNumbers(raw []byte) error {
	s := newScanner(raw)
	defer s.release()
	s.bounded = true
	return s.run()
}

// Canonicalize returns the canonical form of raw. The error is a *SyntaxError or a *NumberError (an exponent beyond
// ±400, more than 1,000 digits).
func Canonicalize(raw []byte) ([]byte, error) {
	s := newScanner(raw)
	defer s.release()
	s.bounded, s.tagging = true, true
	s.out = make([]byte, 0, len(raw)+len(raw)/8+16)
	if err := s.run(); err != nil {
		return nil, err
	}
	return transform(s.out)
}

// transform sends tagged text through RFC 8785 and takes the tags off again. In tagged text every string value starts
// with an s of ours and every number is a string that starts with an n, so the library, which would round numbers to
// doubles, sees none and the two cannot be taken for each other. Keys are left as they are: their order depends on all
// of them.
func transform(tagged []byte) ([]byte, error) {
	text, err := jcs.Transform(tagged)
	if err != nil {
		return nil, fmt.Errorf("canonical: text that passed the check did not pass RFC 8785") // the cause quotes the text
	}
	return untag(text), nil
}

// untag works in place: its output is never longer than what it has read.
func untag(text []byte) []byte {
	out := text[:0]
	for i := 0; i < len(text); {
		if text[i] != '"' {
			out = append(out, text[i])
			i++
			continue
		}
		end := i + 1
		for text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		end++
		switch {
		case end < len(text) && text[end] == ':': // canonical text has no space before the colon
			out = append(out, text[i:end]...)
		case text[i+1] == 'n':
			out = append(out, text[i+2:end-1]...)
		default:
			out = append(out, '"')
			out = append(out, text[i+2:end]...)
		}
		i = end
	}
	return out
}
