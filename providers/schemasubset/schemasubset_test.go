package schemasubset_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/schemasubset"
)

var rules = schemasubset.Rules{
	Name:     "strict mode",
	Keywords: []string{"description", "minimum", "pattern"}, Dropped: []string{"maxLength", "$schema"}, Formats: []string{"date"},
	AllRequired: true, MaxDepth: 3, MaxProperties: 8, MaxEnumValues: 5, MaxNames: 60,
}

func TestConvert(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schema, want string }{
		"ClosedAndRequired": {`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"}},"required":["a","b"]}`,
			`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number"}},"required":["b","a"],"additionalProperties":false}`},
		"OptionalScalar": {`{"type":"object","properties":{"a":{"description":"d","type":"string","maxLength":3}}}`,
			`{"type":"object","properties":{"a":{"description":"d","type":["string","null"]}},"required":["a"],"additionalProperties":false}`},
		"OptionalEnum": {`{"type":"object","properties":{"a":{"enum":["x","y"]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string","enum":["x","y"]},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`},
		"OptionalAndNullableStays": {`{"type":"object","properties":{"a":{"type":["string","null"]}}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`},
		"OptionalObjectInAnArray": {`{"type":"object","required":["l"],"properties":{"l":{"type":"array","items":{"type":"object","properties":{"o":{"type":"object","properties":{}}}}}}}`,
			`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"o":{"anyOf":[{"type":"object","properties":{},"required":[],"additionalProperties":false},{"type":"null"}]}},"required":["o"],"additionalProperties":false}}},"required":["l"],"additionalProperties":false}`},
		"Dropped": {`{"$schema":"x","type":"object","required":["d","t"],"properties":{"d":{"type":"string","format":"date"},"t":{"type":"string","format":"mine","maxLength":9}},"additionalProperties":{}}`,
			`{"type":"object","properties":{"d":{"type":"string","format":"date"},"t":{"type":"string"}},"required":["d","t"],"additionalProperties":false}`},
		"BigNumbersAsTheyAre": {`{"type":"object","required":["n"],"properties":{"n":{"type":"number","minimum":12345678901234567890.10}}}`,
			`{"type":"object","properties":{"n":{"type":"number","minimum":12345678901234567890.10}},"required":["n"],"additionalProperties":false}`},
		"ReferencesAndChoices": {`{"type":"object","required":["c"],"properties":{"c":{"oneOf":[{"$ref":"#/$defs/a","description":"gone"},{"type":"null"}]}},"$defs":{"a":{"type":"object","properties":{"next":{"$ref":"#/$defs/a"}}}}}`,
			`{"type":"object","properties":{"c":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}},"$defs":{"a":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}},"required":["next"],"additionalProperties":false}},"required":["c"],"additionalProperties":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := schemasubset.Convert(json.RawMessage(tc.schema), rules)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(f.Schema))
		})
	}
}

func object(property string) string {
	return `{"type":"object","properties":{"a":` + property + `}}`
}

func TestWhatCannotBeExpressedIsAnErrorThatNamesThePlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schema, want string }{
		"NotJSON":              {`{`, `"#" is not JSON`},
		"RootIsNoObject":       {`{"type":"array","items":{"type":"string"}}`, `"#" must be an object itself`},
		"RootMayBeNull":        {`{"type":["object","null"],"properties":{}}`, `"#" must be an object itself`},
		"RootIsAChoice":        {`{"anyOf":[{"type":"object","properties":{}}]}`, `"#" must be an object itself`},
		"Anything":             {object(`true`), `"#/properties/a" takes anything`},
		"NoType":               {object(`{"description":"d"}`), `"#/properties/a" has no type`},
		"OpenMap":              {object(`{"type":"object","additionalProperties":{"type":"string"}}`), `"#/properties/a/additionalProperties" allows properties without a name`},
		"AllOf":                {object(`{"allOf":[]}`), `"#/properties/a/allOf" has no form`},
		"Not":                  {object(`{"type":"string","not":{}}`), `"#/properties/a/not" has no form`},
		"Tuple":                {object(`{"type":"array","items":{"type":"string"},"prefixItems":[]}`), `"#/properties/a/prefixItems" has no form`},
		"ArrayOfAnything":      {object(`{"type":"array"}`), `"#/properties/a" says nothing of the array's items`},
		"ElsewhereReferred":    {object(`{"$ref":"https://example.com/x"}`), `"#/properties/a/$ref" refers to something else`},
		"PointerReferred":      {object(`{"$ref":"#/properties/b"}`), `"#/properties/a/$ref" refers to something else`},
		"RulesBesideReference": {object(`{"$ref":"#","type":"object"}`), `"#/properties/a" has rules beside $ref`},
		"RulesBesideChoice":    {object(`{"anyOf":[{"type":"null"}],"type":"string"}`), `"#/properties/a" has rules beside a choice`},
		"TwoChoices":           {object(`{"anyOf":[{"type":"null"}],"oneOf":[{"type":"string"}]}`), `"#/properties/a/oneOf" stands beside another choice`},
		"ChoiceOfNothing":      {object(`{"anyOf":[]}`), `"#/properties/a" is a choice of nothing`},
		"ChoiceNotToBeTold":    {object(`{"anyOf":[` + object(`{"type":"string"}`) + `,` + object(`{"type":["number","null"]}`) + `]}`), `"#/properties/a" is a choice of objects with the same properties`},
		"ChoiceOfArrays":       {object(`{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"array","items":{"type":"null"}}]}`), `"#/properties/a" is a choice of several arrays`},
		"InnerDefinitions":     {object(`{"type":"string","$defs":{}}`), `"#/properties/a/$defs" is not at the root`},
		"RequiredNotDeclared":  {`{"type":"object","properties":{},"required":["x"]}`, `"#" requires "x"`},
		"WrongType":            {object(`{"type":"string","properties":{}}`), `"#/properties/a" has rules for another type`},
		"EnumOfObjects":        {object(`{"enum":[{}]}`), `"#/properties/a" lists values that are objects`},
		"KeyTwice":             {`{"type":"object","properties":{"a":{"type":"string"},"\u0061":{"type":"string"}}}`, `"#/properties" has the key "a" twice`},
		"TooDeep":              {object(object(object(object(`{"type":"string"}`)))), `has more than 3 objects inside of each other`},
		"TooManyProperties":    {`{"type":"object","properties":{` + strings.TrimSuffix(strings.Repeat(`"#":{"type":"string"},`, 9), ",") + `}}`, `has 9 properties, more than 8`},
		"TooManyValues":        {object(`{"enum":[1,2,3,4,5,6]}`), `has 6 enum values, more than 5`},
		"NamesTooLong":         {`{"type":"object","properties":{"` + strings.Repeat("x", 61) + `":{"type":"string"}}}`, `has 61 characters of names and values, more than 60`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := tc.schema
			for i := 0; strings.Contains(schema, `"#":`); i++ {
				schema = strings.Replace(schema, `"#":`, `"p`+string(rune('a'+i))+`":`, 1)
			}
			_, err := schemasubset.Convert(json.RawMessage(schema), rules)
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "strict mode cannot express the output schema: ")
			var e *schemasubset.Error
			require.ErrorAs(t, err, &e)
		})
	}
}

// narrow are rules without what others have: const, lists of anything, cycles.
var narrow = schemasubset.Rules{Name: "narrow mode", ConstAsEnum: true, ListedKinds: []string{"string", "number"}, OptionalCycles: true}

func TestConvertWithoutConstAndLists(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ property, want string }{
		"Const":         {`{"const":"x","description":"gone"}`, `{"type":"string","enum":["x"]}`},
		"ConstAndEnum":  {`{"type":"number","enum":[1,2],"const":2}`, `{"type":"number","enum":[2]}`},
		"EnumAndConst":  {`{"type":"number","const":2,"enum":[1,2]}`, `{"type":"number","enum":[2]}`},
		"NullListed":    {`{"enum":["x",null]}`, `{"type":["string","null"]}`},
		"BooleanConst":  {`{"const":true}`, `{"type":"boolean"}`},
		"CycleOptional": {`{"type":"array","items":{"$ref":"#"}}`, `{"type":"array","items":{"$ref":"#"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := narrow
			r.Dropped = []string{"description"}
			f, err := schemasubset.Convert(json.RawMessage(object(tc.property)), r)
			require.NoError(t, err)
			require.Equal(t, `{"type":"object","properties":{"a":`+tc.want+`},"required":[],"additionalProperties":false}`, string(f.Schema))
		})
	}
}

func TestRequiredCyclesAreAnError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ schema, at string }{
		"Itself":         {`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`, `"#"`},
		"ByItems":        {`{"type":"object","required":["a"],"properties":{"a":{"type":"array","items":{"$ref":"#"}}}}`, `"#"`},
		"ByAChoice":      {`{"type":"object","required":["a"],"properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`, `"#"`},
		"NotUsed":        {`{"type":"object","properties":{},"$defs":{"d":{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/d"}}}}}`, `"#/$defs/d"`},
		"ReferenceAlone": {`{"type":"object","properties":{},"$defs":{"d":{"$ref":"#/$defs/d"}}}`, `"#/$defs/d"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := schemasubset.Convert(json.RawMessage(tc.schema), narrow)
			require.ErrorContains(t, err, tc.at+" contains itself by way of required properties alone")
		})
	}
}

func TestBack(t *testing.T) {
	t.Parallel()
	const optional = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["string","null"]},"c":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"}}}}},"required":["c"]}`
	const choice = `{"type":"object","required":["s"],"properties":{"s":{"anyOf":[
		{"type":"object","required":["kind"],"properties":{"kind":{"const":"one"},"v":{"type":"string"}}},
		{"type":"object","required":["kind"],"properties":{"kind":{"const":"two"},"v":{"type":["string","null"]}}}]}}}`
	for name, tc := range map[string]struct{ schema, output, want string }{
		"First":              {optional, `{"a":null,"b":"x","c":[]}`, `{"b":"x","c":[]}`},
		"Last":               {optional, "{ \"c\" : [ ] ,\n \"b\":\"x\" , \"a\" : null }", "{ \"c\" : [ ] ,\n \"b\":\"x\" }"},
		"Middle":             {optional, `  {"b":"x", "a":null, "c":[]}  `, `  {"b":"x", "c":[]}  `},
		"NullableStays":      {optional, `{"a":null,"b":null,"c":[]}`, `{"b":null,"c":[]}`},
		"Inside":             {optional, `{"a":"\u00e9","b":"","c":[{"x":1.50},{"x":null},{ "x" : null } ]}`, `{"a":"\u00e9","b":"","c":[{"x":1.50},{},{  } ]}`},
		"EscapedKey":         {optional, `{"\u0061":null,"b":"x","c":[]}`, `{"b":"x","c":[]}`},
		"KeyTwiceStaysWrong": {optional, `{"a":"x","a":null,"c":[]}`, `{"a":"x","a":null,"c":[]}`},
		"UnknownKeyStays":    {optional, `{"a":null,"b":"x","c":[],"d":1}`, `{"a":null,"b":"x","c":[],"d":1}`},
		"RequiredNullStays":  {optional, `{"a":"x","b":"x","c":null}`, `{"a":"x","b":"x","c":null}`},
		"NotJSON":            {optional, "```json\n{\"a\":null}```", "```json\n{\"a\":null}```"},
		"OneBranch":          {choice, `{"s":{"kind":"one","v":null}}`, `{"s":{"kind":"one"}}`},
		"OtherBranch":        {choice, `{"s":{"kind":"two","v":null}}`, `{"s":{"kind":"two","v":null}}`},
		"NoBranch":           {choice, `{"s":{"kind":"six","v":null}}`, `{"s":{"kind":"six","v":null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rules
			r.MaxNames, r.MaxProperties = 0, 0
			f, err := schemasubset.Convert(json.RawMessage(tc.schema), r)
			require.NoError(t, err)
			require.Equal(t, tc.want, string(f.Back([]byte(tc.output))))
		})
	}
}
