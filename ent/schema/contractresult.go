package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ContractResult is the outcome of one contract run, with the digests of all that it depends on.
type ContractResult struct{ ent.Schema }

// Annotations keeps the entity out of GraphQL, where ContractStatus tells what the gate makes of it.
func (ContractResult) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entgql.Skip(entgql.SkipAll),
		entsql.Checks(map[string]string{"contract_results_mode": "mode IN ('live','record','replay')"}),
	}
}

// Fields of the ContractResult.
func (ContractResult) Fields() []ent.Field {
	return []ent.Field{
		typeID("ctr"),
		field.String("task").NotEmpty().Immutable(),
		field.String("task_version").NotEmpty().Immutable(),
		field.String("target").NotEmpty().Immutable(),
		field.String("config_digest").NotEmpty().Immutable().Comment("Provider configuration and adapter version."),
		field.String("cases_digest").NotEmpty().Immutable(),
		field.String("checks_version").NotEmpty().Immutable(),
		field.String("digest").NotEmpty().Immutable().Comment("Over everything that the result depends on."),
		field.Enum("mode").Values("live", "record", "replay").Immutable(),
		field.Bool("passed").Immutable(),
		rawJSON("report", true, false),
		field.String("ran_by").NotEmpty().Immutable(),
		createdAt(),
		field.String("signed_by").Optional().Nillable().Immutable().Comment("The id of the key whose signature was trusted; of imported results."),
		field.String("imported_by").Optional().Nillable().Immutable(),
		field.Time("imported_at").Optional().Nillable().Immutable(),
	}
}

// Indexes of the ContractResult.
func (ContractResult) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("task_version", "target", "created_at"),
		index.Fields("task", "target", "created_at"),
	}
}
