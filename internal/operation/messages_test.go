package operation

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

func TestValuesAreHiddenForValidationOnly(t *testing.T) {
	t.Parallel()
	doc, err := parser.ParseQuery(&ast.Source{Input: `query($a: JSON = {n: 1e400}) {
		a(b: [99999999999999999999, 1e400, 0.1, 1, 1, {c: "x"}, x, "x", KNOWN, true, null, $a])
	}`})
	require.NoError(t, err)
	value := doc.Operations[0].SelectionSet[0].(*ast.Field).Arguments[0].Value
	before := value.String()
	e := &Executor{enums: map[string]bool{"KNOWN": true}}
	m := e.mask(doc)
	require.Equal(t, `[1900000001,1900000000.5,1900000002.5,1900000003,1900000003,{c:"⟨000004⟩"},⟨000005⟩,"⟨000004⟩",KNOWN,true,null,$a]`, value.String())
	require.Equal(t, `{n:1900000000.5}`, doc.Operations[0].VariableDefinitions[0].DefaultValue.String())
	_, err = value.Value(nil)
	require.NoError(t, err, "numbers are such that validation can read them")
	m.restore()
	require.Equal(t, before, value.String())
}
