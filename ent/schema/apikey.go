package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// APIKey is a credential of an owner. The key itself is nowhere, only its hash.
type APIKey struct{ ent.Schema }

// Annotations keeps the entity out of GraphQL: `docket keys` makes, lists and revokes keys.
func (APIKey) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll), entsql.Annotation{Table: "api_keys"}}
}

// Fields of the APIKey. Issuer and subject are those of the owner, who may have no row yet.
func (APIKey) Fields() []ent.Field {
	return []ent.Field{
		typeID("key"),
		field.Bytes("hash").NotEmpty().Immutable().Sensitive().Comment("SHA-256 of the whole key."),
		field.String("issuer").NotEmpty().Immutable(),
		field.String("subject").NotEmpty().Immutable(),
		field.Bool("operator").Immutable(),
		field.String("note").Immutable(),
		field.String("created_by").NotEmpty().Immutable(),
		createdAt(),
		field.Time("expires_at").Optional().Nillable().Immutable(),
		field.Time("last_used_at").Optional().Nillable().Comment("To some minutes: not every use is written."),
		field.Time("revoked_at").Optional().Nillable(),
		field.String("revoked_by").Optional().Nillable(),
	}
}

// Indexes of the APIKey.
func (APIKey) Indexes() []ent.Index {
	return []ent.Index{index.Fields("issuer", "subject")}
}
