package canonical

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The oracle decides by other means whether two texts are one document: encoding/json reads them and math/big compares
// their numbers.

func decode(t require.TestingT, raw []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	require.NoError(t, decoder.Decode(&v))
	return v
}

func sameDocument(t require.TestingT, a, b []byte) bool {
	return sameValue(decode(t, a), decode(t, b))
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, member := range a {
			other, ok := b[name]
			if !ok || !sameValue(member, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(b))
		return okX && okY && x.Cmp(y) == 0
	default:
		return a == b
	}
}

var drawnStrings = rapid.OneOf(
	rapid.SampledFrom([]string{"", "a", "b", "n", "s", "n1", "s1", "1", ":", `"`, `\`, "é", "e\u0301", "\u2028", "\U0001F600", "\uFB33", "\x00", "\x7f"}),
	rapid.StringN(0, 8, 32),
)

// drawTree draws a document as encoding/json would decode it.
func drawTree(t *rapid.T, numbers bool, depth int) any {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	switch {
	case kind == 0:
		return nil
	case kind == 1:
		return rapid.Bool().Draw(t, "bool")
	case kind == 2 && numbers:
		return drawNumber(t)
	case kind <= 3 || depth == 0:
		return drawnStrings.Filter(utf8.ValidString).Draw(t, "string")
	case kind == 4:
		v := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "length") {
			v = append(v, drawTree(t, numbers, depth-1))
		}
		return v
	default:
		v := map[string]any{}
		for range rapid.IntRange(0, 24).Draw(t, "size") {
			v[drawnStrings.Filter(utf8.ValidString).Draw(t, "key")] = drawTree(t, numbers, depth-2)
			if depth < 3 && len(v) > 2 {
				break
			}
		}
		return v
	}
}

func drawNumber(t *rapid.T) json.Number {
	return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?(0{0,3}[0-9]|[1-3][0-9]{1,2}|400))?`).Draw(t, "number"))
}

// mutate changes at most one place of a document.
func mutate(t *rapid.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			out[name] = member
		}
		names := sortedKeys(out)
		if len(names) == 0 {
			return map[string]any{"a": nil}
		}
		name := rapid.SampledFrom(names).Draw(t, "name")
		switch rapid.IntRange(0, 2).Draw(t, "change") {
		case 0:
			out[name] = mutate(t, out[name])
		case 1:
			delete(out, name)
		default:
			out[name+"x"] = out[name]
			delete(out, name)
		}
		return out
	case []any:
		out := append([]any{}, v...)
		if len(out) == 0 {
			return []any{nil}
		}
		i := rapid.IntRange(0, len(out)-1).Draw(t, "index")
		if rapid.Bool().Draw(t, "swap") {
			out[i], out[0] = out[0], out[i]
			return out
		}
		out[i] = mutate(t, out[i])
		return out
	case json.Number:
		if text := string(v); !strings.ContainsAny(text, "eE") && strings.Contains(text, ".") {
			return json.Number(text + rapid.SampledFrom([]string{"0", "1", "e1", "e0"}).Draw(t, "tail"))
		}
		return v.String()
	case string:
		return v + rapid.SampledFrom([]string{"", "x", "\u0301"}).Draw(t, "tail")
	default:
		return "null"
	}
}

func sortedKeys(v map[string]any) []string {
	var names []string
	text, _ := json.Marshal(v)
	decoder := json.NewDecoder(bytes.NewReader(text))
	_, _ = decoder.Token()
	for decoder.More() {
		name, _ := decoder.Token()
		names = append(names, name.(string))
		var skip json.RawMessage
		_ = decoder.Decode(&skip)
	}
	return names
}

// drawText writes a document in one of its many ways: order of keys, white space, escapes, spelling of numbers.
func drawText(t *rapid.T, v any) string {
	var b strings.Builder
	writeText(t, &b, v)
	return b.String()
}

func writeText(t *rapid.T, b *strings.Builder, v any) {
	space := func() { b.WriteString(rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r"}).Draw(t, "space")) }
	space()
	defer space()
	switch v := v.(type) {
	case map[string]any:
		names := sortedKeys(v)
		if len(names) > 1 {
			names = rapid.Permutation(names).Draw(t, "order")
		}
		b.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			writeString(t, b, name)
			space()
			b.WriteByte(':')
			writeText(t, b, v[name])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(t, b, element)
		}
		b.WriteByte(']')
	case string:
		writeString(t, b, v)
	case json.Number:
		b.WriteString(respell(t, string(v)))
	default:
		fmt.Fprint(b, map[any]string{nil: "null", true: "true", false: "false"}[v])
	}
}

func writeString(t *rapid.T, b *strings.Builder, v string) {
	b.WriteByte('"')
	for _, r := range v {
		escape := rapid.IntRange(0, 3).Draw(t, "escape") == 0
		switch {
		case r >= 0x10000 && escape:
			fmt.Fprintf(b, `\u%04x\u%04X`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		case r < 0x10000 && (escape || r < 0x20):
			fmt.Fprintf(b, `\u%04x`, r)
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

// respell writes the same number in another way.
func respell(t *rapid.T, number string) string {
	mantissa, exponent := number, 0
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa = number[:i]
		exponent, _ = strconv.Atoi(strings.TrimPrefix(number[i+1:], "+"))
	}
	switch rapid.IntRange(0, 3).Draw(t, "spelling") {
	case 1: // more zeros
		if !strings.Contains(mantissa, ".") {
			mantissa += "."
		}
		mantissa += "00"
	case 2: // a shifted point
		if whole, fraction, ok := strings.Cut(mantissa, "."); ok && exponent < 370 && exponent > -370 {
			sign := ""
			if whole[0] == '-' {
				sign, whole = "-", whole[1:]
			}
			digits := strings.TrimLeft(whole+fraction, "0")
			if digits == "" {
				digits = "0"
			}
			mantissa, exponent = sign+digits, exponent-len(fraction)
		}
	}
	if exponent == 0 && rapid.Bool().Draw(t, "bare") {
		return mantissa
	}
	return mantissa + rapid.SampledFrom([]string{"e", "E"}).Draw(t, "e") + strconv.Itoa(exponent)
}
