package graph_test

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/docket-gateway/docket/graph/generated"
)

// public is the promised interface, as the design has it: commas and all.
//
//go:embed testdata/public.graphql
var public string

// elsewhere are types of the promise whose definition it leaves to the ecosystem's extension, with what it says of them.
const elsewhere = `
scalar Cursor
interface Node { id: ID! }
enum JobState { QUEUED RUNNING UNKNOWN WAITING SUCCEEDED FAILED CANCELLED }
enum AttemptState { STARTING RUNNING UNKNOWN SUCCEEDED FAILED CANCELLED SUPERSEDED }
enum AttemptReason { PRIMARY RETRY FALLBACK HEDGE MANUAL }
enum ContractState { PASSED FAILED STALE MISSING }
`

func TestSchemaKeepsThePublicInterface(t *testing.T) {
	t.Parallel()
	promised, err := parser.ParseSchema(&ast.Source{Input: public + elsewhere})
	require.NoError(t, err)
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	require.Greater(t, len(promised.Definitions), 40)

	for _, want := range promised.Definitions {
		got := schema.Types[want.Name]
		require.NotNil(t, got, want.Name)
		require.Equal(t, want.Kind, got.Kind, want.Name)
		for _, name := range want.Interfaces {
			require.Contains(t, got.Interfaces, name, want.Name)
		}
		require.ElementsMatch(t, want.Types, got.Types, "union %s", want.Name)
		for _, f := range want.Fields {
			name := want.Name + "." + f.Name
			field := got.Fields.ForName(f.Name)
			require.NotNil(t, field, name)
			require.Equal(t, f.Type.String(), field.Type.String(), name)
			for _, a := range f.Arguments {
				argument := field.Arguments.ForName(a.Name)
				require.NotNil(t, argument, "%s(%s)", name, a.Name)
				require.Equal(t, a.Type.String(), argument.Type.String(), "%s(%s)", name, a.Name)
			}
			for _, a := range field.Arguments {
				// An argument of ours that is required would break the promised call.
				require.True(t, f.Arguments.ForName(a.Name) != nil || !a.Type.NonNull, "%s(%s)", name, a.Name)
			}
		}
		if want.Kind == ast.InputObject {
			require.Len(t, got.Fields, len(want.Fields), want.Name)
		}
		var values []string
		for _, v := range want.EnumValues {
			values = append(values, v.Name)
		}
		for _, v := range got.EnumValues {
			require.Contains(t, values, v.Name, want.Name)
		}
		require.Len(t, got.EnumValues, len(values), want.Name)
	}
}

func TestEveryErrorOfAMutationIsAUserError(t *testing.T) {
	t.Parallel()
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	for _, f := range schema.Mutation.Fields {
		for _, name := range schema.Types[f.Type.Name()].Types {
			if !strings.HasSuffix(name, "Success") {
				require.Contains(t, schema.Types[name].Interfaces, "UserError", name)
			}
		}
	}
}
