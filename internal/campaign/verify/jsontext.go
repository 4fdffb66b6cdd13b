package verify

import (
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"strconv"
	"strings"
)

// maxExponent bounds what is written out to compare numbers; beyond it, they are compared as text.
const maxExponent = 400

// sameJSON compares two JSON texts by value: key order, white space and the way numbers are written do not matter, numbers
// are exact. What is not one JSON text equals only the same bytes; nil equals nil.
func sameJSON(a, b json.RawMessage) bool {
	if (a == nil) != (b == nil) {
		return false
	}
	return bytes.Equal(a, b) || canonical(a) == canonical(b)
}

// canonical is a text that two JSON texts share if they have the same value. It starts with a byte that no JSON text
// starts with if raw is none.
func canonical(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "!" + string(raw)
	}
	if _, err := d.Token(); err != io.EOF { //nolint:errorlint // a decoder returns it bare
		return "!" + string(raw)
	}
	out, err := json.Marshal(exact(v)) // sorts keys
	if err != nil {
		return "!" + string(raw)
	}
	return string(out)
}

// exact writes all numbers in one way. Numbers become tagged objects so that they never equal a string.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		return map[string]string{"\x00number": number(v.String())}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

func number(s string) string {
	if _, e, ok := strings.Cut(strings.ToLower(s), "e"); ok {
		if n, err := strconv.Atoi(e); err != nil || n > maxExponent || n < -maxExponent {
			return s
		}
	}
	if r, ok := new(big.Rat).SetString(s); ok {
		return r.RatString()
	}
	return s
}
