package verify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

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
	if _, err := d.Token(); err != io.EOF {
		return "!" + string(raw)
	}
	out, err := json.Marshal(exact(v)) // sorts keys
	if err != nil {
		return "!" + string(raw)
	}
	return string(out)
}

// exact writes all numbers in one way.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v.String())
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

// number writes a JSON number as its digits without zeros at either end and, if that leaves one, an exponent.
func number(s string) json.Number {
	digits, e, _ := strings.Cut(strings.ToLower(s), "e")
	exponent, err := strconv.Atoi(cmp.Or(e, "0"))
	if err != nil { // beyond what anybody can count
		return json.Number(s)
	}
	digits, negative := strings.CutPrefix(digits, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	if short == "" {
		return "0"
	}
	if exponent != 0 {
		short += "e" + strconv.Itoa(exponent)
	}
	if negative {
		short = "-" + short
	}
	return json.Number(short)
}
