package contracts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/docket-gateway/docket/contracts/golden"
)

// kindAt says what kind of value stands at the pointer, for a message about a rule that the value's content has no part in.
func kindAt(raw []byte, pointer string) string {
	trimmed := bytes.TrimSpace(raw)
	switch {
	case len(trimmed) == 0:
		return "nothing"
	case !json.Valid(trimmed):
		return fmt.Sprintf("%d bytes that are not JSON", len(trimmed))
	}
	value, ok := golden.At(trimmed, pointer)
	if !ok {
		return "nothing"
	}
	switch value[0] {
	case '{':
		var v map[string]json.RawMessage
		_ = json.Unmarshal(value, &v) // it is valid
		return fmt.Sprintf("an object with %d keys", len(v))
	case '[':
		var v []json.RawMessage
		_ = json.Unmarshal(value, &v)
		return fmt.Sprintf("an array of %d", len(v))
	case '"':
		var v string
		_ = json.Unmarshal(value, &v)
		return fmt.Sprintf("a string of %d characters", utf8.RuneCountInString(v))
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// showAt is kindAt with the value itself, cut and on one line. It is for reports alone: what a gate says goes into logs and errors.
func showAt(raw []byte, pointer string) string {
	kind := kindAt(raw, pointer)
	value, ok := golden.At(bytes.TrimSpace(raw), pointer)
	if !ok || string(value) == "null" || !json.Valid(value) {
		return kind
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return kind
	}
	return kind + ": " + golden.Line(compact.String())
}
