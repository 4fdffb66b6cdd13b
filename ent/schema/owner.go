package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Owner is the authenticated principal that jobs belong to. Its id follows from issuer and subject.
type Owner struct{ ent.Schema }

// Annotations keeps the entity out of GraphQL: Job.owner is the subject.
func (Owner) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

// Fields of the Owner.
func (Owner) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").NotEmpty().Immutable(),
		field.String("issuer").NotEmpty().Immutable(),
		field.String("subject").NotEmpty().Immutable(),
		createdAt(),
	}
}

// Edges of the Owner.
func (Owner) Edges() []ent.Edge {
	return []ent.Edge{edge.To("jobs", Job.Type)}
}

// Indexes of the Owner.
func (Owner) Indexes() []ent.Index {
	return []ent.Index{index.Fields("issuer", "subject").Unique()}
}
