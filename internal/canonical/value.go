package canonical

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

const (
	ruleType  = "The value's type has no place in JSON."
	ruleFloat = "The number is not finite."
)

// CanonicalizeValue returns the canonical form of a value as a decoder with UseNumber gives it: nil, bool, string,
// json.Number, []any and map[string]any. It takes int, int64, uint64 and float64 too, a float64 as the shortest decimal
// that reads back as it. The error is a *SyntaxError without an offset or a *NumberError.
//
// Decoding hides repeated keys and broken strings: run Check on the text first.
func CanonicalizeValue(v any) ([]byte, error) {
	var w valueWriter
	if err := w.write(v, 0); err != nil {
		return nil, err
	}
	return transform(w.out)
}

// valueWriter writes tagged text.
type valueWriter struct {
	out []byte
}

func (w *valueWriter) write(v any, depth int) error {
	switch v := v.(type) {
	case nil:
		w.out = append(w.out, "null"...)
	case bool:
		w.out = strconv.AppendBool(w.out, v)
	case string:
		return w.string("s", v)
	case json.Number:
		return w.number([]byte(v))
	case int:
		return w.number(strconv.AppendInt(nil, int64(v), 10))
	case int64:
		return w.number(strconv.AppendInt(nil, v, 10))
	case uint64:
		return w.number(strconv.AppendUint(nil, v, 10))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return &NumberError{Rule: ruleFloat}
		}
		return w.number(strconv.AppendFloat(nil, v, 'e', -1, 64))
	case []any:
		return w.array(v, depth)
	case map[string]any:
		return w.object(v, depth)
	default:
		return valueError(ruleType)
	}
	return nil
}

func (w *valueWriter) array(v []any, depth int) error {
	if depth == MaxDepth {
		return valueError(ruleDepth)
	}
	w.out = append(w.out, '[')
	for i, element := range v {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.write(element, depth+1); err != nil {
			return within(AppendIndex("", i), err)
		}
	}
	w.out = append(w.out, ']')
	return nil
}

func (w *valueWriter) object(v map[string]any, depth int) error {
	if depth == MaxDepth {
		return valueError(ruleDepth)
	}
	w.out = append(w.out, '{')
	first := true
	for name, member := range v {
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		if err := w.string("", name); err != nil {
			return err
		}
		w.out = append(w.out, ':')
		if err := w.write(member, depth+1); err != nil {
			return within(AppendPointer("", name), err)
		}
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *valueWriter) string(tag, v string) error {
	if !utf8.ValidString(v) {
		return valueError(ruleUTF8)
	}
	w.out = append(append(w.out, '"'), tag...)
	for i := range len(v) {
		switch c := v[i]; {
		case c == '"' || c == '\\':
			w.out = append(w.out, '\\', c)
		case c < 0x20:
			const hex = "0123456789abcdef"
			w.out = append(w.out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			w.out = append(w.out, c)
		}
	}
	w.out = append(w.out, '"')
	return nil
}

func (w *valueWriter) number(text []byte) error {
	s := newScanner(text)
	defer s.release()
	if len(text) == 0 || text[0] != '-' && (text[0] < '0' || text[0] > '9') || s.number() != nil || s.pos != len(text) {
		return valueError(ruleNumber)
	}
	w.out = append(w.out, '"', 'n')
	var rule string
	if w.out, rule = appendNumber(w.out, text); rule != "" {
		return &NumberError{Rule: rule}
	}
	w.out = append(w.out, '"')
	return nil
}

func valueError(rule string) error {
	return &SyntaxError{Offset: -1, Rule: rule}
}

// within puts the way to a member or element before the pointer of its error, so that pointers cost nothing until
// something fails.
func within(pointer string, err error) error {
	var syntax *SyntaxError
	var number *NumberError
	switch {
	case errors.As(err, &syntax):
		syntax.Pointer = pointer + syntax.Pointer
	case errors.As(err, &number):
		number.Pointer = pointer + number.Pointer
	}
	return err
}
