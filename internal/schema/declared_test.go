package schema

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestFindsUndeclaredKeys lists instances that are valid; want are the pointers of the keys that nothing declares.
func TestFindsUndeclaredKeys(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		schema, instance string
		want             []string
	}{
		"Properties":                    {`{"properties":{"a":{}}}`, `{"a":1}`, nil},
		"PropertiesUndeclared":          {`{"properties":{"a":{}}}`, `{"a":1,"b":2}`, []string{"/b"}},
		"EmptySchema":                   {`{}`, `{"a":1,"b":{"c":1}}`, []string{"/a", "/b"}},
		"TrueSchema":                    {`true`, `{"a":1}`, []string{"/a"}},
		"ScalarsHaveNoKeys":             {`{}`, `[1,"a",null,[2]]`, nil},
		"EmptyObject":                   {`{}`, `{}`, nil},
		"RequiredDeclaresNothing":       {`{"required":["a"]}`, `{"a":1}`, []string{"/a"}},
		"TypeDeclaresNothing":           {`{"type":"object"}`, `{"a":1}`, []string{"/a"}},
		"ConstDeclaresNothing":          {`{"const":{"a":1}}`, `{"a":1}`, []string{"/a"}},
		"PropertyNamesDeclareNothing":   {`{"propertyNames":{"pattern":"^a"}}`, `{"a":1}`, []string{"/a"}},
		"MinPropertiesDeclareNothing":   {`{"minProperties":1}`, `{"a":1}`, []string{"/a"}},
		"DependentRequiredDeclaresNone": {`{"properties":{"a":{}},"dependentRequired":{"a":["b"]}}`, `{"a":1,"b":2}`, []string{"/b"}},
		"NotDeclaresNothing":            {`{"properties":{"a":{}},"not":{"properties":{"b":{"const":1}},"required":["b"]}}`, `{"a":1,"b":2}`, []string{"/b"}},
		"EscapesPointers":               {`{"properties":{"a/~":{"properties":{"ok":{}}}}}`, `{"a/~":{"b/~":1},"~1":2}`, []string{"/a~1~0/b~1~0", "/~01"}},
		"InnerOfDeclaredEmpty":          {`{"properties":{"a":{}}}`, `{"a":{"b":1}}`, []string{"/a/b"}},
		"InnerOfDeclaredTrue":           {`{"properties":{"a":true}}`, `{"a":{"b":1}}`, []string{"/a/b"}},
		"InnerOfDeclaredObject":         {`{"properties":{"a":{"type":"object"}}}`, `{"a":{"b":{"c":1}}}`, []string{"/a/b"}},
		"InnerOfDeclaredInArrays":       {`{"properties":{"a":{}}}`, `{"a":[[{"b":1}]]}`, []string{"/a/0/0/b"}},
		"Nested":                        {`{"properties":{"a":{"properties":{"b":{"properties":{"c":{}}}}}}}`, `{"a":{"b":{"c":1,"d":2}}}`, []string{"/a/b/d"}},

		"PatternProperties":           {`{"patternProperties":{"^x-":{}}}`, `{"x-a":1,"y":2}`, []string{"/y"}},
		"PatternPropertiesNested":     {`{"patternProperties":{"^x-":{"properties":{"a":{}}}}}`, `{"x-1":{"a":1},"x-2":{"b":1}}`, []string{"/x-2/b"}},
		"TwoPatternsOnOneKey":         {`{"patternProperties":{"^x":{"properties":{"a":{}}},"y$":{"properties":{"b":{}}}}}`, `{"xy":{"a":1,"b":2,"c":3}}`, []string{"/xy/c"}},
		"PropertiesAndPattern":        {`{"properties":{"xa":{"properties":{"p":{}}}},"patternProperties":{"^x":{"properties":{"q":{}}}}}`, `{"xa":{"p":1,"q":2}}`, nil},
		"AdditionalTrue":              {`{"properties":{"a":{}},"additionalProperties":true}`, `{"a":1,"b":2}`, []string{"/b"}},
		"AdditionalEmptyIsTrue":       {`{"additionalProperties":{}}`, `{"b":2}`, []string{"/b"}},
		"AdditionalSchema":            {`{"properties":{"a":{}},"additionalProperties":{"type":"integer"}}`, `{"a":1,"b":2}`, nil},
		"AdditionalSchemaNested":      {`{"additionalProperties":{"properties":{"a":{}}}}`, `{"k":{"a":1},"l":{"b":1}}`, []string{"/l/b"}},
		"AdditionalSkipsProperties":   {`{"properties":{"a":{}},"additionalProperties":{"properties":{"x":{}}}}`, `{"a":{"x":1},"b":{"x":1}}`, []string{"/a/x"}},
		"AdditionalSkipsPatterns":     {`{"patternProperties":{"^a":{}},"additionalProperties":{"properties":{"x":{}}}}`, `{"a":{"x":1},"b":{"x":1}}`, []string{"/a/x"}},
		"AdditionalDescriptionCounts": {`{"additionalProperties":{"description":"anything"}}`, `{"b":{"c":1}}`, []string{"/b/c"}},
		"AdditionalByRefToTrue":       {`{"additionalProperties":{"$ref":"#/$defs/any"},"$defs":{"any":true}}`, `{"b":1}`, nil},
		"UnevaluatedTrue":             {`{"properties":{"a":{}},"unevaluatedProperties":true}`, `{"a":1,"b":2}`, []string{"/b"}},
		"UnevaluatedEmptyIsTrue":      {`{"unevaluatedProperties":{}}`, `{"b":2}`, []string{"/b"}},
		"UnevaluatedSchema":           {`{"properties":{"a":{}},"unevaluatedProperties":{"properties":{"x":{}}}}`, `{"a":{"x":1},"b":{"x":1,"y":2}}`, []string{"/a/x", "/b/y"}},
		"UnevaluatedLeavesEvaluated":  {`{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":{"properties":{"x":{}}}}`, `{"a":{"x":1},"b":{"x":1}}`, []string{"/a/x"}},
		"UnevaluatedAfterTrue":        {`{"allOf":[{"additionalProperties":true}],"unevaluatedProperties":{"type":"integer"}}`, `{"a":1}`, []string{"/a"}},
		"UnevaluatedFalseIsClosed":    {`{"anyOf":[{"properties":{"a":{"type":"integer"}}}],"unevaluatedProperties":false}`, `{"a":1}`, nil},

		"AllOf":                      {`{"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}`, `{"a":1,"b":2,"c":3}`, []string{"/c"}},
		"AllOfOnOneChild":            {`{"allOf":[{"properties":{"a":{"properties":{"x":{}}}}},{"properties":{"a":{"properties":{"y":{}}}}}]}`, `{"a":{"x":1,"y":2,"z":3}}`, []string{"/a/z"}},
		"AnyOfBranchThatHolds":       {`{"anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{}}}]}`, `{"a":"x","b":1}`, nil},
		"AnyOfBranchThatFails":       {`{"anyOf":[{"properties":{"a":{"type":"string"},"c":{}}},{"properties":{"b":{}}}]}`, `{"a":1,"b":1,"c":1}`, []string{"/a", "/c"}},
		"AnyOfBranchThatFailsDeep":   {`{"anyOf":[{"properties":{"a":{"properties":{"x":{"type":"string"},"y":{}}}}},{"properties":{"a":{"properties":{"x":{}}}}}]}`, `{"a":{"x":1,"y":2}}`, []string{"/a/y"}},
		"OneOfBranchThatHolds":       {`{"oneOf":[{"properties":{"k":{"const":"a"},"a":{}}},{"properties":{"k":{"const":"b"},"b":{}}}]}`, `{"k":"b","b":1,"a":2}`, []string{"/a"}},
		"AnyOfInArray":               {`{"items":{"anyOf":[{"properties":{"k":{"const":"a"},"a":{}}},{"properties":{"k":{"const":"b"},"b":{}}}]}}`, `[{"k":"a","a":1},{"k":"b","a":1}]`, []string{"/1/a"}},
		"IfThatHolds":                {`{"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"properties":{"a":{}}},"else":{"properties":{"b":{}}}}`, `{"k":1,"a":1,"b":1}`, []string{"/b"}},
		"IfThatFails":                {`{"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"properties":{"a":{}}},"else":{"properties":{"b":{}}}}`, `{"k":2,"a":1,"b":1}`, []string{"/a", "/k"}},
		"IfAlone":                    {`{"if":{"properties":{"k":{"const":1}}}}`, `{"k":1}`, nil},
		"ThenNested":                 {`{"if":true,"then":{"properties":{"a":{"properties":{"b":{}}}}}}`, `{"a":{"b":1,"c":1}}`, []string{"/a/c"}},
		"DependentSchemas":           {`{"properties":{"a":{}},"dependentSchemas":{"a":{"properties":{"b":{}}},"z":{"properties":{"c":{}}}}}`, `{"a":1,"b":2,"c":3}`, []string{"/c"}},
		"Ref":                        {`{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"a":{}}}}}`, `{"a":1,"b":1}`, []string{"/b"}},
		"RefWithSiblings":            {`{"$ref":"#/$defs/t","properties":{"b":{}},"$defs":{"t":{"properties":{"a":{}}}}}`, `{"a":1,"b":1,"c":1}`, []string{"/c"}},
		"RefByAnchorAndId":           {`{"$id":"http://x.test/s","properties":{"p":{"$ref":"http://x.test/t#n"}},"$defs":{"t":{"$id":"t","$defs":{"n":{"$anchor":"n","properties":{"a":{}}}}}}}`, `{"p":{"a":1,"b":1}}`, []string{"/p/b"}},
		"RefToItself":                {`{"properties":{"v":{},"next":{"$ref":"#"}}}`, `{"v":1,"next":{"v":1,"next":{"v":1,"w":1}}}`, []string{"/next/next/w"}},
		"RefTree":                    {`{"$defs":{"n":{"properties":{"v":{},"kids":{"items":{"$ref":"#/$defs/n"}}}}},"$ref":"#/$defs/n"}`, `{"v":1,"kids":[{"v":1,"kids":[{"x":1}]},{"kids":[]}]}`, []string{"/kids/0/kids/0/x"}},
		"RefTreeThroughAnyOf":        {`{"$defs":{"n":{"anyOf":[{"type":"number"},{"type":"object","properties":{"l":{"$ref":"#/$defs/n"},"r":{"$ref":"#/$defs/n"}},"required":["l"]}]}},"$ref":"#/$defs/n"}`, `{"l":{"l":1,"r":2},"r":{"l":{"l":1,"x":1}}}`, []string{"/r/l/x"}},
		"RefsOnOneValueTwice":        {`{"allOf":[{"$ref":"#/$defs/t"},{"$ref":"#/$defs/t"}],"$defs":{"t":{"properties":{"a":{"$ref":"#/$defs/t"}}}}}`, `{"a":{"a":{"b":1}}}`, []string{"/a/a/b"}},
		"DynamicRefUnextended":       {`{"$id":"http://x.test/tree","$dynamicAnchor":"n","properties":{"kids":{"items":{"$dynamicRef":"#n"}}}}`, `{"kids":[{"kids":[],"x":1}]}`, []string{"/kids/0/x"}},
		"DynamicRefExtended":         {dynamicTree(`{"properties":{"tag":{}}}`), `{"tag":1,"kids":[{"tag":1,"kids":[{"tag":1,"x":1}]}]}`, []string{"/kids/0/kids/0/x"}},
		"DynamicRefDecidesBranches":  {dynamicTree(`{"properties":{"tag":{"type":"integer"}},"required":["tag"]}`), `{"tag":1,"pick":{"tag":1,"only":{"tag":1}}}`, nil},
		"DynamicRefFailsBranch":      {dynamicTree(`{"properties":{"tag":{"type":"integer"}},"required":["tag"]}`), `{"tag":1,"pick":{"tag":1,"only":{}}}`, []string{"/pick/only", "/pick/tag"}},
		"DynamicAnchorOnlyInDefs":    {`{"$id":"http://x.test/r","$ref":"list","$defs":{"item":{"$dynamicAnchor":"item","properties":{"a":{}}},"list":{"$id":"list","items":{"$dynamicRef":"#item"},"$defs":{"d":{"$dynamicAnchor":"item"}}}}}`, `[{"a":1,"b":1}]`, []string{"/0/b"}},
		"DynamicRefOnOneValueTwice":  {`{"$id":"http://x.test/r","allOf":[{"if":true,"then":{"$ref":"list"}},{"$ref":"list"}],"$defs":{"item":{"$dynamicAnchor":"item","properties":{"b":{}}},"list":{"$id":"list","items":{"$dynamicRef":"#item"},"$defs":{"d":{"$dynamicAnchor":"item","properties":{"a":{}}}}}}}`, `[{"a":1,"b":1,"c":1}]`, []string{"/0/c"}},
		"Items":                      {`{"items":{"properties":{"a":{}}}}`, `[{"a":1},{"b":1}]`, []string{"/1/b"}},
		"ItemsNestedArrays":          {`{"items":{"items":{"properties":{"a":{}}}}}`, `[[{"a":1}],[{"a":1},{"b":1}]]`, []string{"/1/1/b"}},
		"PrefixItems":                {`{"prefixItems":[{"properties":{"a":{}}}],"items":{"properties":{"b":{}}}}`, `[{"a":1,"b":1},{"a":1,"b":1}]`, []string{"/0/b", "/1/a"}},
		"ItemsBeyondPrefix":          {`{"prefixItems":[{"properties":{"a":{}}}]}`, `[{"a":1},{"a":1}]`, []string{"/1/a"}},
		"Contains":                   {`{"contains":{"properties":{"k":{"const":1},"a":{}},"required":["k"]}}`, `[{"k":1,"a":1},{"k":2,"a":1}]`, []string{"/1/a", "/1/k"}},
		"UnevaluatedItems":           {`{"prefixItems":[{}],"unevaluatedItems":{"properties":{"a":{}}}}`, `[{"a":1},{"a":1,"b":1}]`, []string{"/0/a", "/1/b"}},
		"UnevaluatedItemsAndContain": {`{"contains":{"properties":{"k":{"const":1}},"required":["k"]},"unevaluatedItems":{"properties":{"a":{}}}}`, `[{"k":1,"a":1},{"a":1}]`, []string{"/0/a"}},
		"OldDraftItems":              {`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"properties":{"a":{}}}],"additionalItems":{"properties":{"b":{}}}}`, `[{"a":1},{"b":1},{"c":1}]`, []string{"/2/c"}},
		"OldDraftItemsOne":           {`{"$schema":"http://json-schema.org/draft-07/schema#","items":{"properties":{"a":{}}}}`, `[{"a":1},{"b":1}]`, []string{"/1/b"}},
		"OldDraftDependencies":       {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{}},"dependencies":{"a":{"properties":{"b":{}}},"z":{"properties":{"c":{}}}}}`, `{"a":1,"b":1,"c":1}`, []string{"/c"}},
		"OldDraftRecursiveRef":       {`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}`, `{"a":{"a":{"b":1}}}`, []string{"/a/a/b"}},
		"KeysNamedAsKeywords":        {`{"properties":{"properties":{"properties":{"items":{}}}}}`, `{"properties":{"items":1,"properties":2}}`, []string{"/properties/properties"}},
		"KeysDifferInCase":           {`{"properties":{"name":{}}}`, `{"name":1,"Name":2}`, []string{"/Name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile("s", []byte(tc.schema))
			require.NoError(t, err)
			require.Empty(t, s.Validate([]byte(tc.instance)))
			var got []string
			for _, issue := range s.ValidateOutput([]byte(tc.instance)) {
				require.Equal(t, RuleUndeclared, issue.Rule)
				got = append(got, issue.Pointer)
			}
			require.Equal(t, tc.want, got)
			require.Len(t, s.ValidateOutput([]byte(tc.instance)), len(tc.want), "a second run says the same")
		})
	}
}

// dynamicTree is a tree whose nodes are extended by another schema.
func dynamicTree(extension string) string {
	return `{"$id":"http://x.test/ext","$dynamicAnchor":"node","allOf":[{"$ref":"tree"},` + extension + `],"$defs":{"tree":{
		"$id":"tree","$dynamicAnchor":"node","properties":{
			"kids":{"items":{"$dynamicRef":"#node"}},
			"pick":{"anyOf":[{"properties":{"tag":{},"only":{"$dynamicRef":"#node"}}},true]}}}}}`
}

func TestValidateOutputNamesEveryLevel(t *testing.T) {
	t.Parallel()

	s, err := Compile("s", []byte(`{"properties":{"a":{"items":{"properties":{"b":{}}}}}}`))
	require.NoError(t, err)
	require.Equal(t, []Issue{
		{Pointer: "/a/1/y", Rule: "undeclared", Message: "The schema does not declare this key."},
		{Pointer: "/x", Rule: "undeclared", Message: "The schema does not declare this key."},
	}, s.ValidateOutput([]byte(`{"x":{"inner":1},"a":[{"b":1},{"y":1}]}`)))
}

func TestValidateOutputIsValidateFirst(t *testing.T) {
	t.Parallel()

	s, err := Compile("s", []byte(`{"properties":{"a":{"type":"integer"}}}`))
	require.NoError(t, err)
	want := []Issue{{Pointer: "/a", Rule: "type", Message: "The value must be of type integer."}}
	require.Equal(t, want, s.ValidateOutput([]byte(`{"a":"x","b":1}`)))
	require.Equal(t, want, s.Validate([]byte(`{"a":"x","b":1}`)))
	require.Equal(t, RuleSyntax, s.ValidateOutput([]byte(`{"a":1,"a":1}`))[0].Rule)
}

// drawClosed draws a schema that declares all keys by one of many keywords, and an instance that is valid against it.
func drawClosed(t *rapid.T, depth int) (schema, instance any) {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth == 0 && kind > 1 {
		kind %= 2
	}
	type object = map[string]any
	switch kind {
	case 0:
		return object{"type": "integer"}, rapid.IntRange(0, 9).Draw(t, "integer")
	case 1:
		return object{"type": "string"}, "text"
	case 2:
		item, v := drawClosed(t, depth-1)
		return object{"items": item}, []any{v, v}
	case 3:
		first, v := drawClosed(t, depth-1)
		rest, w := drawClosed(t, depth-1)
		return object{"prefixItems": []any{first}, "items": rest}, []any{v, w}
	case 4:
		sub, v := drawClosed(t, depth-1)
		return object{"anyOf": []any{object{"type": "boolean", "properties": object{"zz": true}}, sub}}, v
	case 5:
		sub, v := drawClosed(t, depth-1)
		return object{"if": object{"type": "null"}, "then": object{"properties": object{"zz": true}}, "else": sub}, v
	case 6:
		sub, v := drawClosed(t, depth-1)
		return object{"patternProperties": object{"^x-": sub}}, object{"x-1": v}
	default:
		properties, v := object{}, object{}
		for _, name := range []string{"a", "b", "a/b~"}[:rapid.IntRange(0, 3).Draw(t, "size")] {
			properties[name], v[name] = drawClosed(t, depth-1)
		}
		if rapid.Bool().Draw(t, "by reference") {
			return object{"allOf": []any{object{"properties": properties}}}, v
		}
		return object{"type": "object", "properties": properties}, v
	}
}

// objects returns all objects in an instance.
func objects(v any) []map[string]any {
	var found []map[string]any
	switch v := v.(type) {
	case map[string]any:
		found = append(found, v)
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			found = append(found, objects(v[name])...)
		}
	case []any:
		for _, item := range v {
			found = append(found, objects(item)...)
		}
	}
	return found
}

func TestValidateOutputRefusesAnyAddedKey(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		sub, inner := drawClosed(t, 4)
		schemaText, err := json.Marshal(map[string]any{"properties": map[string]any{"root": sub}})
		require.NoError(t, err)
		s, err := Compile("s", schemaText)
		require.NoError(t, err)
		text, err := json.Marshal(map[string]any{"root": inner})
		require.NoError(t, err)
		require.Empty(t, s.ValidateOutput(text), "%s %s", schemaText, text)

		instance, err := decode(text) // a copy: the drawn instance shares parts
		require.NoError(t, err)
		all := objects(instance)
		at := rapid.SampledFrom(all).Draw(t, "object")
		name := rapid.StringMatching(`z[a-z/~]{0,4}`).Draw(t, "key")
		at[name] = rapid.SampledFrom([]any{nil, 1, "", map[string]any{}}).Draw(t, "value")
		text, err = json.Marshal(instance)
		require.NoError(t, err)
		issues := s.ValidateOutput(text)
		require.Len(t, issues, 1, "%s %s", schemaText, text)
		require.Equal(t, RuleUndeclared, issues[0].Rule)
		require.True(t, strings.HasSuffix(issues[0].Pointer, canonical.Pointer(name)))
	})
}
