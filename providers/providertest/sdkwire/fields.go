package sdkwire

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Fields compares a JSON document with the fields of the SDK's type T and returns a line for each key that the type does not
// have and for each value of another type. It is for SDKs whose types keep nothing of what they were decoded from and whose own
// UnmarshalJSON methods make json.Decoder's DisallowUnknownFields stop short, such as google.golang.org/genai. What a message must have
// cannot be told from those types.
func Fields[T any](data []byte) ([]string, error) {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("sdkwire: %w", err)
	}
	var doc any
	if err := unmarshal(data, &doc); err != nil {
		return nil, err
	}
	var found []string
	fields(doc, reflect.TypeFor[T](), reflect.TypeFor[T]().Name(), &found)
	return found, nil
}

var timeType = reflect.TypeFor[time.Time]()

func fields(doc any, t reflect.Type, path string, found *[]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	another := func() { *found = append(*found, path+": of another type") }
	if t.Kind() == reflect.Interface {
		return
	}
	switch d := doc.(type) {
	case nil:
		*found = append(*found, path+": null")
	case map[string]any:
		object(d, t, path, found)
	case []any:
		if t.Kind() != reflect.Slice {
			another()
			return
		}
		for i, e := range d {
			fields(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i), found)
		}
	case string:
		bytes := t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
		if t.Kind() != reflect.String && !bytes && t != timeType {
			another()
		}
	case json.Number:
		if k := t.Kind(); k < reflect.Int || k > reflect.Float64 {
			another()
		}
	case bool:
		if t.Kind() != reflect.Bool {
			another()
		}
	}
}

func object(doc map[string]any, t reflect.Type, path string, found *[]string) {
	known := map[string]reflect.Type{}
	switch t.Kind() {
	case reflect.Map:
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				known[name] = f.Type
			}
		}
	default:
		*found = append(*found, path+": of another type")
		return
	}
	for _, k := range slices.Sorted(maps.Keys(doc)) {
		at := path + "." + k
		if t.Kind() == reflect.Map {
			fields(doc[k], t.Elem(), at, found)
		} else if ft, ok := known[k]; ok {
			fields(doc[k], ft, at, found)
		} else {
			*found = append(*found, at+": not known")
		}
	}
}
