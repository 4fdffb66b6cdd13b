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
