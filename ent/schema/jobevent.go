package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// JobEvent is one line of a job's log, committed with the change that it tells of.
type JobEvent struct{ ent.Schema }

// Annotations keeps the entity out of the generated GraphQL: its type is written by hand, it is not a Relay node.
func (JobEvent) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.Skip(entgql.SkipAll)}
}

// Fields of the JobEvent.
func (JobEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id").Immutable(),
		field.String("job_id").Immutable(),
		field.Int("number").Positive().Immutable(),
		field.String("type").NotEmpty().Immutable(),
		field.Time("at").Default(now).Immutable(),
		field.String("attempt_id").Optional().Nillable().Immutable(),
		field.String("from").Optional().Nillable().Immutable().StorageKey("from_state"),
		field.String("to").Optional().Nillable().Immutable().StorageKey("to_state"),
		rawJSON("detail", true, true),
	}
}

// Edges of the JobEvent.
func (JobEvent) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("job", Job.Type).Ref("events").Field("job_id").Unique().Required().Immutable(),
		edge.From("attempt", Attempt.Type).Ref("events").Field("attempt_id").Unique().Immutable(),
	}
}

// Indexes of the JobEvent.
func (JobEvent) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("job_id", "number").Unique(),
		// Without it, removing an attempt would look through all events for those that name it.
		index.Fields("attempt_id"),
	}
}
