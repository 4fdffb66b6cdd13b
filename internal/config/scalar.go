package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

var (
	durationType        = reflect.TypeFor[time.Duration]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// isScalar reports whether a value of type t is read from one piece of text.
func isScalar(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(textUnmarshalerType) {
		return true
	}
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Slice
}

// setScalar reads text into dst. It serves file and environment alike.
func setScalar(dst reflect.Value, text string) error {
	if u, ok := dst.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	if dst.Type() == durationType {
		d, err := parseDuration(text)
		if err != nil {
			return err
		}
		dst.SetInt(int64(d))
		return nil
	}
	switch dst.Kind() {
	case reflect.String:
		dst.SetString(text)
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		dst.SetInt(int64(n))
	case reflect.Bool:
		switch text {
		case "true":
			dst.SetBool(true)
		case "false":
			dst.SetBool(false)
		default:
			return errors.New("must be true or false")
		}
	default:
		return fmt.Errorf("a %s cannot be configured", dst.Type())
	}
	return nil
}

// fieldsOf maps a struct's keys to its fields.
func fieldsOf(t reflect.Type) map[string]int {
	fields := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "" && key != "-" {
			fields[key] = i
		}
	}
	return fields
}
