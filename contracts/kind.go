package contracts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// kindAt says what kind of value stands at the pointer, for a message that must not show the value itself. It returns ""
// if nothing can be said.
func kindAt(raw []byte, pointer string) string {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 {
		return "nothing"
	}
	dec := json.NewDecoder(bytes.NewReader(trimmed))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return fmt.Sprintf("%d bytes that are not JSON", len(trimmed))
	}
	if _, err := dec.Token(); err != io.EOF {
		return "JSON with something after it"
	}
	if pointer != "" {
		for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
			part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
			switch at := v.(type) {
			case map[string]any:
				next, ok := at[part]
				if !ok {
					return "nothing"
				}
				v = next
			case []any:
				i, err := strconv.Atoi(part)
				if err != nil || i < 0 || i >= len(at) {
					return "nothing"
				}
				v = at[i]
			default:
				return "nothing"
			}
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return fmt.Sprintf("an object with %d keys", len(v))
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case string:
		return fmt.Sprintf("a string of %d characters", len([]rune(v)))
	case json.Number:
		return "a number"
	case bool:
		return "a boolean"
	}
	return "null"
}
