// Package scalar holds the GraphQL scalars that carry more than gqlgen's own.
//
// It imports nothing of this module.
package scalar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/99designs/gqlgen/graphql"
)

// errJSON never repeats the value.
var errJSON = errors.New("the value cannot be written as JSON")

// MarshalJSON writes the text that was stored, compacted. No text is null.
func MarshalJSON(raw json.RawMessage) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) {
		if len(raw) == 0 {
			_, _ = io.WriteString(w, "null")
			return
		}
		var buf bytes.Buffer
		if err := json.Compact(&buf, raw); err != nil {
			// Panicking makes the field an internal error; anything written would break the whole response.
			panic(fmt.Errorf("stored JSON is malformed: %w", err))
		}
		_, _ = w.Write(buf.Bytes())
	})
}

// UnmarshalJSON turns a decoded value back into text. Numbers must come as json.Number to be exact, so a float64, which
// may have lost digits already, is an error.
func UnmarshalJSON(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	if err := exact(v); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, errJSON
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte{'\n'}), nil
}

func exact(v any) error {
	switch v := v.(type) {
	case nil, bool, string, json.Number, int, int32, int64:
		return nil
	case []any:
		for _, item := range v {
			if err := exact(item); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		for _, item := range v {
			if err := exact(item); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%w: it holds a %T", errJSON, v)
}
