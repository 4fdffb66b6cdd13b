package schema

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValidateNamesPlaceAndRule(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		schema, instance string
		want             []Issue
	}{
		"Valid":             {`{"type":"object"}`, `{}`, nil},
		"Type":              {`{"properties":{"a/b":{"type":["string","null"]}}}`, `{"a/b":7}`, []Issue{{"/a~1b", "type", "The value must be of type string or null."}}},
		"PercentInKeys":     {`{"additionalProperties":{"type":"string"}}`, `{"a%2Fb é":7}`, []Issue{{"/a%2Fb é", "type", "The value must be of type string."}}},
		"Required":          {`{"required":["b","a"]}`, `{}`, []Issue{{"", "required", `The key "a" is required.`}, {"", "required", `The key "b" is required.`}}},
		"Additional":        {`{"properties":{"a":{}},"additionalProperties":false}`, `{"z~":1,"a":1,"b":1}`, []Issue{{"/b", "additionalProperties", "The schema does not allow this key."}, {"/z~0", "additionalProperties", "The schema does not allow this key."}}},
		"AdditionalInItems": {`{"items":{"additionalProperties":false}}`, `[{},{"b":1}]`, []Issue{{"/1/b", "additionalProperties", "The schema does not allow this key."}}},
		"Unevaluated":       {`{"unevaluatedProperties":false}`, `{"b":1}`, []Issue{{"/b", "unevaluatedProperties", "The schema does not allow this key."}}},
		"FalseProperty":     {`{"properties":{"items":false}}`, `{"items":1}`, []Issue{{"/items", "properties", `The value breaks the schema's rule "properties".`}}},
		"FalseSchema":       {`false`, `1`, []Issue{{"", "", "The schema allows no value."}}},
		"Enum":              {`{"enum":["a",1,null]}`, `"secret"`, []Issue{{"", "enum", `The value must be one of "a", 1, null.`}}},
		"Const":             {`{"const":{"a":1}}`, `"secret"`, []Issue{{"", "const", `The value must be {"a":1}.`}}},
		"Minimum":           {`{"minimum":0.5}`, `0.25`, []Issue{{"", "minimum", "The number must be at least 0.5."}}},
		"MinimumHuge":       {`{"minimum":1e300}`, `1`, []Issue{{"", "minimum", "The number must be at least the schema's bound."}}},
		"MaximumBigInteger": {`{"maximum":9007199254740992}`, `9007199254740993`, []Issue{{"", "maximum", "The number must be at most 9007199254740992."}}},
		"MultipleOf":        {`{"multipleOf":0.01}`, `1.005`, []Issue{{"", "multipleOf", "The number must be a multiple of 0.01."}}},
		"Lengths":           {`{"prefixItems":[{"minLength":1},{"maxLength":2}]}`, `["","éüö"]`, []Issue{{"/0", "minLength", "The text must have at least 1 character."}, {"/1", "maxLength", "The text must have at most 2 characters."}}},
		"Pattern":           {`{"pattern":"^a+$"}`, `"secret"`, []Issue{{"", "pattern", `The text must match the pattern "^a+$".`}}},
		"Format":            {`{"properties":{"m":{"format":"email"},"d":{"format":"date"}}}`, `{"m":"secret","d":"2023-02-29"}`, []Issue{{"/d", "format", `The value must be in the format "date".`}, {"/m", "format", `The value must be in the format "email".`}}},
		"FormatUnknown":     {`{"format":"no-such-format"}`, `"x"`, nil},
		"UniqueItems":       {`{"uniqueItems":true}`, `[1,1.0]`, []Issue{{"", "uniqueItems", "The items must differ from each other."}}},
		"Contains":          {`{"contains":{"type":"string"},"minContains":2}`, `[1,"a",2]`, []Issue{{"", "minContains", "The array must have at least 2 items that the schema asks for."}}},
		"PropertyNames":     {`{"propertyNames":{"maxLength":1}}`, `{"abc":1}`, []Issue{{"/abc", "maxLength", "The text must have at most 1 character."}}},
		"DependentRequired": {`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []Issue{{"", "dependentRequired", "A key that is present requires another that is missing."}}},
		"AnyOf":             {`{"anyOf":[{"type":"string"},{"minimum":5}]}`, `1`, []Issue{{"", "anyOf", "The value must fit at least one of the schema's branches."}, {"", "minimum", "The number must be at least 5."}, {"", "type", "The value must be of type string."}}},
		"OneOfTwo":          {`{"oneOf":[{"type":"integer"},{"minimum":0}]}`, `1`, []Issue{{"", "oneOf", "The value must fit exactly one of the schema's branches."}}},
		"Not":               {`{"not":{"type":"integer"}}`, `1`, []Issue{{"", "not", "The value must not be what the schema excludes."}}},
		"ThroughRef":        {`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"if":true,"then":{"type":"null"}}]}}}`, `1`, []Issue{{"", "type", "The value must be of type null."}}},
		"Syntax":            {`{}`, `{"a":[1,]}`, []Issue{{"/a/1", "syntax", "A value must start here."}}},
		"Fences":            {`{}`, "```json\n{}\n```", []Issue{{"", "syntax", "A value must start here."}}},
		"RepeatedKey":       {`{}`, `{"a":{"b":1,"\u0062":2}}`, []Issue{{"/a/b", "syntax", "The key is repeated in its object."}}},
		"HugeExponent":      {`{"type":"integer"}`, `[1e10000000]`, []Issue{{"/0", "syntax", "The number's exponent is beyond 400 or -400."}}},
		"IntegerWithPoint":  {`{"type":"integer"}`, `1.0`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile("s", []byte(tc.schema))
			require.NoError(t, err)
			require.Equal(t, tc.want, s.Validate([]byte(tc.instance)))
		})
	}
}

func TestValidateBoundsIssues(t *testing.T) {
	t.Parallel()

	s, err := Compile("s", []byte(`{"items":{"type":"string"},"additionalProperties":false}`))
	require.NoError(t, err)
	require.Len(t, s.Validate([]byte(`[`+strings.Repeat("1,", 500)+`1]`)), MaxIssues)
	var members []string
	for i := range 500 {
		members = append(members, fmt.Sprintf(`"k%d":1`, i))
	}
	object := []byte(`{` + strings.Join(members, ",") + `}`)
	require.Len(t, s.Validate(object), MaxIssues)
	open, err := Compile("s", []byte(`{}`))
	require.NoError(t, err)
	require.Len(t, open.ValidateOutput(object), MaxIssues)
}

func TestValidateGivesUpOnExponentialWork(t *testing.T) {
	t.Parallel()

	s, err := Compile("s", []byte(`{"anyOf":[
		{"properties":{"op":{"const":"add"},"l":{"$ref":"#"}}},
		{"properties":{"op":{"const":"sub"},"l":{"$ref":"#"}}}]}`))
	require.NoError(t, err)
	nested := func(depth int, inner string) []byte {
		return []byte(strings.Repeat(`{"op":"add","l":`, depth) + inner + strings.Repeat("}", depth))
	}
	require.Empty(t, s.ValidateOutput(nested(8, `{"op":"sub"}`)))
	for _, depth := range []int{30, 500} {
		require.Equal(t, []Issue{{Rule: RuleLimit, Message: "The value would take too many steps to check."}}, s.Validate(nested(depth, "{}")))
	}
	require.Empty(t, s.ValidateOutput(nested(8, `{"op":"sub"}`)), "it is as good as new afterwards")
}

func TestValidateHasStepsForDeepValues(t *testing.T) {
	t.Parallel()

	s, err := Compile("s", []byte(`{"anyOf":[{"type":"null"},{"type":"object","required":["next"],"properties":{"next":{"$ref":"#"}}}]}`))
	require.NoError(t, err)
	require.Empty(t, s.ValidateOutput([]byte(strings.Repeat(`{"next":`, 500)+"null"+strings.Repeat("}", 500))))
}

func TestValidateHasStepsForBigValues(t *testing.T) {
	t.Parallel()

	s, err := Compile("s", []byte(`{"items":{"anyOf":[{"type":"null"},{"const":2},{"const":3},{"const":4},{"const":5},{"$ref":"#/$defs/n"}]},"$defs":{"n":{"type":"integer"}}}`))
	require.NoError(t, err)
	require.Empty(t, s.ValidateOutput([]byte(`[`+strings.Repeat("1,", 20_000)+`1]`)))
}

func TestValidateAtTheSame(t *testing.T) {
	t.Parallel()

	s, err := Compile("s", []byte(`{"properties":{"a":{"type":"integer"}}}`))
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 50 {
				if len(s.ValidateOutput([]byte(`{"a":1}`))) != 0 || len(s.ValidateOutput([]byte(`{"b":1}`))) != 1 {
					t.Error("wrong under concurrency")
				}
			}
		})
	}
	group.Wait()
}

func TestZeroSchemaRefusesAll(t *testing.T) {
	t.Parallel()

	require.NotEmpty(t, new(Schema).Validate([]byte(`{}`)))
}

func TestCompileNamesThePlace(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ schema, want string }{
		"Syntax":             {`{"type":}`, `schema "in": at "/type": A value must start here.`},
		"RepeatedKey":        {`{"type":"object","type":"array"}`, `schema "in": at "/type": The key is repeated in its object.`},
		"NotASchema":         {`[]`, `schema "in": at "":`},
		"UnknownType":        {`{"properties":{"a/b":{"type":"strng"}}}`, `schema "in": at "/properties/a~1b/type"`},
		"NegativeLength":     {`{"items":{"minLength":-1}}`, `schema "in": at "/items/minLength"`},
		"HugeLength":         {`{"items":{"minLength":1e300}}`, `schema "in": at "/items": a bound is too large`},
		"HugeNumber":         {`{"minimum":1e999}`, `schema "in": at "/minimum": The number's exponent is beyond`},
		"EmptyEnum":          {`{"items":{"enum":[]}}`, `schema "in": at "/items": an empty enum allows no value`},
		"LookAhead":          {`{"properties":{"a":{"pattern":"(?=x)"}}}`, `schema "in": at "/properties/a/pattern"`},
		"HTTP":               {`{"items":{"$ref":"http://127.0.0.1:1/other.json#/x"}}`, `schema "in": at "/items/$ref": it refers to "http://127.0.0.1:1/other.json#/x", which is outside of it: nothing is loaded`},
		"File":               {`{"items":{"$ref":"file:///etc/passwd"}}`, `schema "in": at "/items/$ref": it refers to "file:///etc/passwd", which is outside`},
		"RelativeFile":       {`{"items":{"$ref":"../other.json"}}`, `schema "in": at "/items/$ref": it refers to "../other.json", which is outside`},
		"MetaSchema":         {`{"$schema":"https://example.com/meta"}`, `schema "in": at "/$schema": it refers to "https://example.com/meta"`},
		"DanglingRef":        {`{"$ref":"#/$defs/none"}`, `schema "in": #/$defs/none not found`},
		"DanglingAnchor":     {`{"$ref":"#none"}`, `schema "in": #none not found`},
		"EndlessRef":         {`{"$ref":"#"}`, `schema "in": `},
		"EndlessMutualAllOf": {`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`, `schema "in": `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Compile("in", []byte(tc.schema))
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), base)
		})
	}
}

func TestCompileTakesNamesOfAnyKind(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"", "a b", "a#b", "../x?y=%", "urn:a", "é"} {
		s, err := Compile(name, []byte(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"null"}}}`))
		require.NoError(t, err, name)
		require.Len(t, s.Validate([]byte(`1`)), 1)
	}
}

func TestRawIsACopy(t *testing.T) {
	t.Parallel()

	text := []byte(`{"type":"null"}`)
	s, err := Compile("s", text)
	require.NoError(t, err)
	text[0] = 'x'
	s.Raw()[0] = 'x'
	require.JSONEq(t, `{"type":"null"}`, string(s.Raw()))
}

func FuzzValidateOutput(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"type":"integer"}},"additionalProperties":{"$ref":"#"}}`), []byte(`{"a":1,"b":{"c":2}}`))
	f.Add([]byte(`{"anyOf":[{"if":{"required":["a"]},"then":{"items":{}}},{"$dynamicRef":"#x"}],"$dynamicAnchor":"x"}`), []byte(`[{"a":"b"}]`))
	f.Add([]byte(dynamicTree(`{}`)), []byte(`{"kids":[{"pick":{"only":{}}}]}`))
	f.Add([]byte(`{"contains":{"format":"date"},"unevaluatedItems":false,"unevaluatedProperties":{"minimum":1}}`), []byte(`["2020-01-01"]`))
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]},"items":[{}]}`), []byte(`{"a":1}`))
	f.Fuzz(func(t *testing.T, schema, instance []byte) {
		s, err := Compile("fuzz", schema)
		if err != nil {
			return
		}
		plain, strict := s.Validate(instance), s.ValidateOutput(instance)
		if len(plain) > 0 {
			require.NotEmpty(t, strict)
		}
		require.Equal(t, strict, s.ValidateOutput(instance), "it says the same each time")
		for _, issue := range strict {
			require.NotEqual(t, "The value cannot be checked.", issue.Message)
		}
	})
}

func BenchmarkValidateOutput(b *testing.B) {
	s, err := Compile("s", []byte(`{"type":"array","items":{"type":"object","required":["id"],"properties":{
		"id":{"type":"integer"},"name":{"type":"string"},"kind":{"anyOf":[{"const":"a"},{"const":"b"}]},"lines":{"items":{"properties":{"n":{"type":"number"}}}}}}}`))
	require.NoError(b, err)
	raw := []byte(`[` + strings.TrimSuffix(strings.Repeat(`{"id":1,"name":"x","kind":"a","lines":[{"n":1.5},{"n":2}]},`, 100), ",") + `]`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if len(s.ValidateOutput(raw)) != 0 {
			b.Fatal("not valid")
		}
	}
}
