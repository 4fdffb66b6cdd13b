package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shopspring/decimal"

	"github.com/docket-gateway/docket/internal/canonical"
)

// Mode is how the value at a pointer is compared with the golden's.
type Mode struct {
	Kind      Kind
	Tolerance decimal.Decimal // of Tolerance: the greatest absolute difference
}

// Kind of a Mode.
type Kind string

const (
	ModeExact     Kind = "exact"     // equal as JSON, numbers by value; a golden for each target
	ModeSubset    Kind = "subset"    // everything of the golden is there: keys of objects, elements of arrays in any order
	ModeStructure Kind = "structure" // same places and types, as everywhere that has no other mode
	ModeTolerance Kind = "tolerance" // a number, no further away than the tolerance
)

const tolerancePrefix = string(ModeTolerance) + ":"

// pointerPattern is RFC 6901's grammar.
var pointerPattern = regexp.MustCompile(`^(/([^~/]|~[01])*)*$`)

// ParseMode reads one entry of a case's compare.
func ParseMode(pointer, mode string) (Mode, error) {
	if !pointerPattern.MatchString(pointer) {
		return Mode{}, errors.New("the key is not a JSON pointer")
	}
	switch k := Kind(mode); k {
	case ModeExact, ModeSubset, ModeStructure:
		return Mode{Kind: k}, nil
	case ModeTolerance: // without its number
	}
	text, ok := strings.CutPrefix(mode, tolerancePrefix)
	if !ok {
		return Mode{}, errors.New("must be exact, subset, structure or tolerance:<number>")
	}
	// Read as a double first: it bounds the exponent.
	if v, err := strconv.ParseFloat(text, 64); err != nil || !(v >= 0 && v <= 1e18) {
		return Mode{}, errors.New("the tolerance must be a number that is not negative")
	}
	t, err := decimal.NewFromString(text)
	if err != nil {
		return Mode{}, errors.New("the tolerance must be a number that is not negative")
	}
	return Mode{Kind: ModeTolerance, Tolerance: t}, nil
}

// Difference is one place where an output is not as the golden has it. Texts are shortened.
type Difference struct {
	Pointer  string
	Expected string
	Got      string
}

// At returns the value at the pointer of a JSON text; ok is false if nothing stands there.
func At(raw []byte, pointer string) (value json.RawMessage, ok bool) {
	v, err := decode(raw)
	if err != nil {
		return nil, false
	}
	v, ok = at(v, pointer)
	if !ok {
		return nil, false
	}
	text, err := encode(v)
	return text, err == nil
}

func at(v any, pointer string) (any, bool) {
	if pointer == "" {
		return v, true
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[token]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) || strconv.Itoa(i) != token {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// Compare returns where the value at the pointer of the output differs from the golden's value there. ModeStructure has
// no value to compare.
func Compare(m Mode, pointer string, want json.RawMessage, output []byte) []Difference {
	if m.Kind == ModeStructure {
		return nil
	}
	w, err := decode(want)
	if err != nil {
		return []Difference{{pointer, "a golden that is JSON", "one that is not"}}
	}
	out, err := decode(output)
	if err != nil {
		return []Difference{{pointer, show(w), "no JSON"}}
	}
	g, ok := at(out, pointer)
	if !ok {
		return []Difference{{pointer, show(w), "nothing"}}
	}
	switch m.Kind {
	case ModeExact:
		return exact(pointer, w, g)
	case ModeSubset:
		return subset(pointer, w, g)
	case ModeTolerance:
		return m.near(pointer, w, g)
	case ModeStructure: // see above
	}
	return []Difference{{pointer, "a known comparison", string(m.Kind)}}
}

// exact goes down to the places that differ, so that a diff stays small.
func exact(pointer string, want, got any) []Difference {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		var out []Difference
		for _, key := range slices.Sorted(maps.Keys(w)) {
			p := canonical.AppendPointer(pointer, key)
			if member, ok := g[key]; ok {
				out = append(out, exact(p, w[key], member)...)
			} else {
				out = append(out, Difference{p, show(w[key]), "nothing"})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(g)) {
			if _, ok := w[key]; !ok {
				out = append(out, Difference{canonical.AppendPointer(pointer, key), "nothing", show(g[key])})
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		var out []Difference
		for i := range max(len(w), len(g)) {
			p := canonical.AppendIndex(pointer, i)
			switch {
			case i >= len(g):
				out = append(out, Difference{p, show(w[i]), "nothing"})
			case i >= len(w):
				out = append(out, Difference{p, "nothing", show(g[i])})
			default:
				out = append(out, exact(p, w[i], g[i])...)
			}
		}
		return out
	case json.Number:
		if g, ok := got.(json.Number); ok && equalNumbers(w, g) {
			return nil
		}
	default:
		if want == got {
			return nil
		}
	}
	return []Difference{{pointer, show(want), show(got)}}
}

// subset takes each element of the golden's arrays to a different element of the output's.
func subset(pointer string, want, got any) []Difference {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		var out []Difference
		for _, key := range slices.Sorted(maps.Keys(w)) {
			p := canonical.AppendPointer(pointer, key)
			if member, ok := g[key]; ok {
				out = append(out, subset(p, w[key], member)...)
			} else {
				out = append(out, Difference{p, show(w[key]), "nothing"})
			}
		}
		return out
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		var out []Difference
		for i := range unmatched(w, g) {
			out = append(out, Difference{canonical.AppendIndex(pointer, i), show(w[i]) + " somewhere in the array", "nothing like it"})
		}
		return out
	}
	return exact(pointer, want, got)
}

// unmatched yields which elements of want find no element of got of their own: a greatest matching by augmenting paths,
// since one element of got may satisfy several.
func unmatched(want, got []any) func(yield func(int) bool) {
	taken := make([]int, len(got)) // by which of want, +1
	var place func(i int, tried []bool) bool
	place = func(i int, tried []bool) bool {
		for j, g := range got {
			if tried[j] || len(subset("", want[i], g)) > 0 {
				continue
			}
			tried[j] = true
			if taken[j] == 0 || place(taken[j]-1, tried) {
				taken[j] = i + 1
				return true
			}
		}
		return false
	}
	return func(yield func(int) bool) {
		for i := range want {
			if !place(i, make([]bool, len(got))) && !yield(i) {
				return
			}
		}
	}
}

func (m Mode) near(pointer string, want, got any) []Difference {
	w, ok := number(want)
	if !ok {
		return []Difference{{pointer, "a golden that is a number", show(want)}}
	}
	expected := fmt.Sprintf("%s ± %s", show(want), m.Tolerance)
	g, ok := number(got)
	if !ok || w.Sub(g).Abs().GreaterThan(m.Tolerance) {
		return []Difference{{pointer, expected, show(got)}}
	}
	return nil
}

func equalNumbers(a, b json.Number) bool {
	x, ok := number(a)
	y, ok2 := number(b)
	return ok && ok2 && x.Equal(y)
}

func number(v any) (decimal.Decimal, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return decimal.Decimal{}, false
	}
	if canonical.CheckNumbers([]byte(n)) != nil {
		return decimal.Decimal{}, false
	}
	d, err := decimal.NewFromString(n.String())
	return d, err == nil
}

// maxShown bounds how much of a value a message shows, in characters.
const maxShown = 120

func show(v any) string {
	raw, err := encode(v)
	if err != nil {
		return "?"
	}
	return Line(string(raw))
}

// Shorten cuts a text that a message quotes.
func Shorten(s string) string {
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	return string([]rune(s)[:maxShown]) + "…"
}

// Line is Shorten for a text that goes into a report as it is: what would steer a terminal, break the line or turn its direction
// stands there as a JSON escape.
func Line(s string) string {
	var b strings.Builder
	for _, r := range Shorten(s) {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			_, _ = fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func encode(v any) (json.RawMessage, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n")), err
}
