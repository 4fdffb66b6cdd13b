//go:build ignore

// Generates ent's code and the GraphQL types that follow from ent/schema. Run from the repository's root.
package main

import (
	"log"
	"strings"

	"entgo.io/contrib/entgql"
	"entgo.io/ent/entc"
	"entgo.io/ent/entc/gen"
	"github.com/vektah/gqlparser/v2/ast"
)

func main() {
	ex, err := entgql.NewExtension(
		entgql.WithConfigPath("./gqlgen.yml"),
		entgql.WithSchemaGenerator(),
		entgql.WithSchemaPath("./graph/ent.graphql"),
		entgql.WithWhereInputs(true),
		entgql.WithRelaySpec(true),
		entgql.WithSchemaHook(requireAttempts, describeFilters),
	)
	if err != nil {
		log.Fatalf("entgql: %v", err)
	}
	if err := entc.Generate("./ent/schema", &gen.Config{
		Target:  "./ent",
		Package: "github.com/docket-gateway/docket/ent",
		Features: []gen.Feature{
			gen.FeaturePrivacy, gen.FeatureUpsert, gen.FeatureLock, gen.FeatureModifier, gen.FeatureExecQuery,
			gen.FeatureVersionedMigration,
		},
	}, entc.Extensions(ex)); err != nil {
		log.Fatalf("ent: %v", err)
	}
}

// requireAttempts makes Job.attempts non-null: a job has its first attempt from its first moment on, and entgql writes
// every list of an edge as nullable.
func requireAttempts(_ *gen.Graph, s *ast.Schema) error {
	for _, f := range s.Types["Job"].Fields {
		if f.Name == "attempts" {
			f.Type.NonNull = true
		}
	}
	return nil
}

// describeFilters says what graph adds to the generated filters.
func describeFilters(_ *gen.Graph, s *ast.Schema) error {
	for name, t := range s.Types {
		if strings.HasSuffix(name, "WhereInput") {
			t.Description += "\nAn empty list matches nothing where it stands for `...In` or `or`, and everything for `...NotIn` or `and`;" +
				" in `has...With` it asks for one of any kind. false of `...IsNil` is true of `...NotNil`, and the other way round."
		}
	}
	return nil
}
