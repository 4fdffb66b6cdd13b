package operation

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
)

func TestShapeExpandsFragments(t *testing.T) {
	t.Parallel()
	doc, err := parser.ParseQuery(&ast.Source{Input: `
		{ a { ...F ... on X { b: c } } }
		fragment F on X { d { e } ...G }
		fragment G on X { f { g { x: h } } ...F ...Missing }`})
	require.NoError(t, err)
	m := &measure{fragments: doc.Fragments, known: map[string]shape{}, open: map[string]bool{}}
	require.Equal(t, shape{depth: 4, fields: 7, aliases: 2}, m.selections(doc.Operations[0].SelectionSet))
}

func TestNumbersAreMaskedForValidationOnly(t *testing.T) {
	t.Parallel()
	doc, err := parser.ParseQuery(&ast.Source{Input: `query($a: JSON = {n: 1e400}) { a(b: [99999999999999999999, 1e400, 0.1, 1, {c: -1e999}]) }`})
	require.NoError(t, err)
	value := doc.Operations[0].SelectionSet[0].(*ast.Field).Arguments[0].Value
	before := value.String()
	restore := maskNumbers(doc)
	require.Equal(t, `[0,0.5,0.1,1,{c:0.5}]`, value.String())
	require.Equal(t, `{n:0.5}`, doc.Operations[0].VariableDefinitions[0].DefaultValue.String())
	restore()
	require.Equal(t, before, value.String())
}
