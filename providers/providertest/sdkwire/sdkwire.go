// Package sdkwire checks what a fake provider says and is told against the types of an official SDK, so that a fake
// cannot drift from the protocol that it plays. It knows the SDKs that are generated like OpenAI's and Anthropic's: a
// struct of an answer has a field JSON that keeps what stood there and what was not expected.
package sdkwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// field is the SDK's respjson.Field.
type field interface {
	Raw() string
	Valid() bool
}

// Decode decodes with the SDK's type T and returns a line for each field that the type does not have, that it requires and
// that is not there, or that has another type.
func Decode[T any](data []byte) ([]string, error) {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("sdkwire: %w", err)
	}
	var c checker
	c.value(reflect.ValueOf(v), fmt.Sprintf("%T", v))
	return c.found, nil
}

type checker struct{ found []string }

func (c *checker) value(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			c.value(v.Elem(), path)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			c.value(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			c.value(it.Value(), path+"."+fmt.Sprint(it.Key()))
		}
	case reflect.Struct:
		c.object(v, path)
	default:
	}
}

// object checks a struct of the SDK. A union is checked as the variant that it holds.
func (c *checker) object(v reflect.Value, path string) {
	meta := v.FieldByName("JSON")
	if !meta.IsValid() || meta.Kind() != reflect.Struct {
		return
	}
	if as := v.MethodByName("AsAny"); as.IsValid() {
		variant := as.Call(nil)[0]
		if variant.Kind() == reflect.Interface && variant.IsNil() {
			c.found = append(c.found, path+": no known variant")
			return
		}
		c.value(variant, path)
		return
	}
	extra := meta.FieldByName("ExtraFields")
	if !extra.IsValid() {
		return // a union of a text and something else, which has no variants to ask for
	}
	for it := extra.MapRange(); it.Next(); {
		c.found = append(c.found, path+"."+it.Key().String()+": not known")
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		seen := meta.FieldByName(f.Name)
		if name == "" || name == "-" || !seen.IsValid() {
			continue
		}
		m, ok := seen.Interface().(field)
		if !ok {
			continue
		}
		at := path + "." + name
		_, constant := f.Tag.Lookup("default")
		switch required := constant || f.Tag.Get("api") == "required"; {
		case m.Raw() == "" && required:
			c.found = append(c.found, at+": missing")
		case m.Raw() == "" || m.Raw() == "null":
		case !m.Valid():
			c.found = append(c.found, at+": of another type")
		case constant && m.Raw() != fmt.Sprintf("%q", f.Tag.Get("default")):
			c.found = append(c.found, at+": not "+f.Tag.Get("default"))
		case f.Type.Kind() == reflect.String && !strings.HasPrefix(m.Raw(), `"`):
			c.found = append(c.found, at+": not a string")
		default:
			c.value(v.Field(i), at)
		}
	}
}

// Unknown decodes a request with the SDK's type T, encodes it again and returns a line for everything that was lost on the
// way: what the type does not have.
func Unknown[T any](data []byte) ([]string, error) {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("sdkwire: %w", err)
	}
	again, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("sdkwire: %w", err)
	}
	var before, after any
	if err := unmarshal(data, &before); err != nil {
		return nil, err
	}
	if err := unmarshal(again, &after); err != nil {
		return nil, err
	}
	var lost []string
	compare(before, after, fmt.Sprintf("%T", v), &lost)
	return lost, nil
}

func unmarshal(data []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("sdkwire: %w", err)
	}
	return nil
}

func compare(before, after any, path string, lost *[]string) {
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			*lost = append(*lost, path+": not an object")
			return
		}
		for k, v := range b {
			if w, ok := a[k]; ok {
				compare(v, w, path+"."+k, lost)
			} else {
				*lost = append(*lost, path+"."+k+": not known")
			}
		}
	case []any:
		a, ok := after.([]any)
		if !ok || len(a) != len(b) {
			*lost = append(*lost, path+": not the same list")
			return
		}
		for i := range b {
			compare(b[i], a[i], fmt.Sprintf("%s[%d]", path, i), lost)
		}
	case json.Number: // some of the SDK's types go through a double
		x, errX := b.Float64()
		a, ok := after.(json.Number)
		y, errY := a.Float64()
		if !ok || errX != nil || errY != nil || x != y {
			*lost = append(*lost, path+": another value")
		}
	default:
		if !reflect.DeepEqual(before, after) {
			*lost = append(*lost, path+": another value")
		}
	}
}
