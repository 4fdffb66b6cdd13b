package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// GateEvent is a change of what the gate says of a target for a task version.
type GateEvent struct{ ent.Schema }

// Annotations keeps the entity out of GraphQL: `docket contracts log` reads it.
func (GateEvent) Annotations() []schema.Annotation {
	const states = "('PASSED','FAILED','STALE','MISSING')"
	return []schema.Annotation{
		entgql.Skip(entgql.SkipAll),
		entsql.Checks(map[string]string{"gate_events_states": "from_state IN " + states + " AND to_state IN " + states}),
	}
}

// Fields of the GateEvent.
func (GateEvent) Fields() []ent.Field {
	return []ent.Field{
		typeID("gev"),
		field.String("task").NotEmpty().Immutable(),
		field.String("task_version").NotEmpty().Immutable(),
		field.String("target").NotEmpty().Immutable(),
		field.String("basis").NotEmpty().Immutable().
			Comment("Digest of what a pass must have been for: replicas that are configured otherwise have gates of their own."),
		field.Int("number").Positive().Immutable().Comment("Within the basis, without gaps: of two processes that see a change one writes it."),
		field.String("from").NotEmpty().Immutable().StorageKey("from_state"),
		field.String("to").NotEmpty().Immutable().StorageKey("to_state"),
		field.JSON("reasons", []string{}).Immutable().SchemaType(map[string]string{dialect.Postgres: "text"}),
		field.String("result_id").Optional().Nillable().Immutable().Comment("The result that decided, if there is one."),
		field.Time("at").Default(now).Immutable(),
	}
}

// Indexes of the GateEvent.
func (GateEvent) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("basis", "number").Unique(),
		index.Fields("task_version", "target", "at"),
		index.Fields("task", "target", "at"),
	}
}
