package schema

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// issues flattens what the library found. The library's own messages quote the instance, so none of them is used.
func (c *compiled) issues(invalid *jsonschema.ValidationError, instance any) []Issue {
	f := &flattener{compiled: c, instance: instance, found: map[Issue]bool{}}
	f.flatten(invalid)
	issues := slices.SortedFunc(maps.Keys(f.found), func(a, b Issue) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return issues[:min(len(issues), MaxIssues)]
}

type flattener struct {
	*compiled
	instance any
	found    map[Issue]bool
}

func (f *flattener) flatten(e *jsonschema.ValidationError) {
	rule := keyword(e.KeywordLocation)
	branches := (rule == "anyOf" || rule == "oneOf") && strings.HasSuffix(e.AbsoluteKeywordLocation, "/"+rule)
	if len(e.Causes) == 0 || branches || rule == "minContains" {
		f.leaf(e, rule)
	}
	if rule == "minContains" { // why each single item does not fit is noise
		return
	}
	for _, cause := range e.Causes {
		f.flatten(cause)
	}
}

func (f *flattener) leaf(e *jsonschema.ValidationError, rule string) {
	pointer := instancePointer(e.InstanceLocation)
	s := f.at[strings.TrimSuffix(e.AbsoluteKeywordLocation, "/"+rule)]
	add := func(pointer, message string) {
		f.found[Issue{Pointer: pointer, Rule: rule, Message: message}] = true
	}
	object, _ := resolve(f.instance, pointer).(map[string]any)
	switch {
	case rule == "required" && s != nil:
		for _, name := range s.Required {
			if _, ok := object[name]; !ok {
				add(pointer, "The key "+strconv.Quote(name)+" is required.")
			}
		}
	case rule == "additionalProperties" && s != nil && isFalse(s.AdditionalProperties):
		for i, name := range additional(s, object) {
			if i == MaxIssues {
				break
			}
			add(canonical.AppendPointer(pointer, name), "The schema does not allow this key.")
		}
	default:
		add(pointer, message(rule, s))
	}
}

// additional returns the keys that neither properties nor patternProperties name, in order.
func additional(s *jsonschema.Schema, object map[string]any) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		_, named := s.Properties[name]
		for pattern := range s.PatternProperties {
			named = named || pattern.MatchString(name)
		}
		if !named {
			names = append(names, name)
		}
	}
	return names
}

var unescaper = strings.NewReplacer("~1", "/", "~0", "~")

// resolve returns what pointer points to in the instance, nil if nothing is there (the name that propertyNames is about).
func resolve(v any, pointer string) any {
	if pointer == "" {
		return v
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		switch at := v.(type) {
		case map[string]any:
			v = at[unescaper.Replace(token)]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

// keyword returns the last keyword of a keyword location: /properties/a/allOf/0/type is about type. It reads from the
// front, since a property may have a keyword's name.
func keyword(location string) string {
	rule := ""
	tokens := strings.Split(strings.TrimPrefix(location, "/"), "/")
	for i := 0; i < len(tokens); i++ {
		rule = tokens[i]
		switch rule {
		case "properties", "patternProperties", "dependentSchemas", "allOf", "anyOf", "oneOf", "prefixItems":
			i++
		case "dependentRequired", "dependencies":
			i++
			if i+1 < len(tokens) && isIndex(tokens[i+1]) {
				i++
			}
		case "items":
			if i+1 < len(tokens) && isIndex(tokens[i+1]) { // before draft 2020-12
				i++
			}
		}
	}
	return rule
}

func isIndex(token string) bool {
	_, err := strconv.Atoi(token)
	return err == nil
}

// isFalse is for the library's fields that hold a bool or a schema.
func isFalse(v any) bool {
	b, ok := v.(bool)
	return ok && !b
}
