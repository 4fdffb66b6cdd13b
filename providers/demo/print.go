package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Print makes a task's output from its input by plain rules: keywords for "triage", parsing for "invoice", and for any
// other task, or one of these names with another output schema, a generic rule that fills the schema (see fill). It
// always gives the same output for the same input. The generic rule does its best and may miss a schema with unusual keywords.
func Print(task string, input, schema json.RawMessage) ([]byte, error) {
	var in any
	if len(input) > 0 {
		if err := decode(input, &in); err != nil {
			return nil, errors.New("the input is not JSON")
		}
	}
	var root any
	if len(schema) > 0 {
		if err := decode(schema, &root); err != nil {
			return nil, errors.New("the output schema is not JSON")
		}
	}
	text := func(key string) string {
		m, _ := in.(map[string]any)
		s, _ := m[key].(string)
		return s
	}
	var out any
	switch {
	case task == "triage" && hasProperties(root, "category", "priority", "summary"):
		out = triage(text("subject"), text("text"))
	case task == "invoice" && hasProperties(root, "invoice_number", "issue_date", "currency", "seller", "lines", "total"):
		out = readInvoice(text("text"))
	default:
		out = newFiller(root, in).fill(root, "", in, 0)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// dictates is how the line before the object that is to be answered with ends.
const dictates = "Answer with exactly this JSON object and nothing else:"

// Dictated returns the object that a system prompt tells to answer with: its last line, if that is a JSON object and the line before
// it ends with the sentence "Answer with exactly this JSON object and nothing else:". It is given back to the byte.
func Dictated(system string) (object []byte, ok bool) {
	before, last, found := cutLast(strings.TrimRight(system, "\r\n"))
	if !found || !strings.HasSuffix(strings.TrimRight(before, " \r"), dictates) {
		return nil, false
	}
	object = []byte(strings.TrimSpace(last))
	if !json.Valid(object) || object[0] != '{' {
		return nil, false
	}
	return object, true
}

func cutLast(text string) (before, last string, found bool) {
	i := strings.LastIndexByte(text, '\n')
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+1:], true
}

// decode keeps numbers as they are written.
func decode(raw []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// hasProperties says whether the schema declares exactly these properties.
func hasProperties(schema any, names ...string) bool {
	m, _ := schema.(map[string]any)
	properties, _ := m["properties"].(map[string]any)
	for _, n := range names {
		if _, ok := properties[n]; !ok {
			return false
		}
	}
	return len(properties) == len(names)
}

// clip makes s one line of at most n characters.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n <= 1 {
		return string([]rune(s)[:n])
	}
	return strings.TrimRight(string([]rune(s)[:n-1]), " ") + "…"
}
