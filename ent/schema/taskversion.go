package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// TaskVersion keeps a task's definition for as long as a job follows it.
type TaskVersion struct{ ent.Schema }

// Annotations keeps the entity out of GraphQL: it holds prompts.
func (TaskVersion) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

// Fields of the TaskVersion.
func (TaskVersion) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable().Comment("The digest."),
		field.String("name").NotEmpty().Immutable(),
		field.String("version").NotEmpty().Immutable(),
		field.Bytes("content").Immutable().SchemaType(map[string]string{dialect.Postgres: "bytea"}),
		createdAt(),
	}
}

// Edges of the TaskVersion.
func (TaskVersion) Edges() []ent.Edge {
	return []ent.Edge{edge.To("jobs", Job.Type)}
}
