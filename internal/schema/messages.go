package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// message says what a keyword demands. It may quote the schema, never the instance. s is nil where the keyword stands
// at a place that is not known.
func message(rule string, s *jsonschema.Schema) string {
	switch rule {
	case "uniqueItems":
		return "The items must differ from each other."
	case "anyOf":
		return "The value must fit at least one of the schema's branches."
	case "oneOf":
		return "The value must fit exactly one of the schema's branches."
	case "not":
		return "The value must not be what the schema excludes."
	case "dependentRequired", "dependencies":
		return "A key that is present requires another that is missing."
	case "additionalProperties", "unevaluatedProperties":
		return "The schema does not allow this key."
	case "unevaluatedItems":
		return "The schema does not allow this item."
	case "propertyNames":
		return "The key's name is not allowed."
	case "":
		return "The schema allows no value."
	}
	if s != nil {
		if text := bound(rule, s); text != "" {
			return text
		}
	}
	return fmt.Sprintf("The value breaks the schema's rule %q.", rule)
}

func bound(rule string, s *jsonschema.Schema) string {
	switch rule {
	case "type":
		return "The value must be of type " + strings.Join(s.Types, " or ") + "."
	case "const":
		return "The value must be " + listed(s.Constant, "the one that the schema gives") + "."
	case "enum":
		return "The value must be one of " + listed(s.Enum, "those that the schema lists") + "."
	case "format":
		return fmt.Sprintf("The value must be in the format %q.", s.Format)
	case "pattern":
		return fmt.Sprintf("The text must match the pattern %q.", s.Pattern)
	case "minLength":
		return fmt.Sprintf("The text must have at least %s.", count(s.MinLength, "character"))
	case "maxLength":
		return fmt.Sprintf("The text must have at most %s.", count(s.MaxLength, "character"))
	case "minItems":
		return fmt.Sprintf("The array must have at least %s.", count(s.MinItems, "item"))
	case "maxItems":
		return fmt.Sprintf("The array must have at most %s.", count(s.MaxItems, "item"))
	case "minContains":
		return fmt.Sprintf("The array must have at least %s that the schema asks for.", count(s.MinContains, "item"))
	case "maxContains":
		return fmt.Sprintf("The array must have at most %s that the schema asks for.", count(s.MaxContains, "item"))
	case "minProperties":
		return fmt.Sprintf("The object must have at least %s.", count(s.MinProperties, "key"))
	case "maxProperties":
		return fmt.Sprintf("The object must have at most %s.", count(s.MaxProperties, "key"))
	case "minimum":
		return "The number must be at least " + decimal(s.Minimum) + "."
	case "maximum":
		return "The number must be at most " + decimal(s.Maximum) + "."
	case "exclusiveMinimum":
		return "The number must be more than " + decimal(s.ExclusiveMinimum) + "."
	case "exclusiveMaximum":
		return "The number must be less than " + decimal(s.ExclusiveMaximum) + "."
	case "multipleOf":
		return "The number must be a multiple of " + decimal(s.MultipleOf) + "."
	}
	return ""
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// listed writes a schema's values if they are short, else it says otherwise.
func listed(values []any, otherwise string) string {
	const short = 200
	var texts []string
	length := 0
	for _, v := range values {
		text, err := json.Marshal(v)
		if length += len(text); err != nil || length > short {
			return otherwise
		}
		texts = append(texts, string(text))
	}
	return strings.Join(texts, ", ")
}

// decimal writes a schema's number exactly if that is short.
func decimal(r *big.Rat) string {
	if r == nil {
		return "the schema's bound"
	}
	digits, exact := r.FloatPrec()
	if text := r.FloatString(digits); exact && len(text) <= 40 {
		return text
	}
	return "the schema's bound"
}
