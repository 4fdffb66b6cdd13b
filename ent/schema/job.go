package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Job is the durable record of one intent.
type Job struct{ ent.Schema }

// Annotations of the Job. The checks hold what code must never be trusted with: a result belongs to a winner.
func (Job) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entgql.RelayConnection(),
		entgql.QueryField("jobs"),
		entsql.Checks(map[string]string{
			"jobs_state":  "state IN ('QUEUED','RUNNING','UNKNOWN','WAITING','SUCCEEDED','FAILED','CANCELLED')",
			"jobs_winner": "((state = 'SUCCEEDED') = (completed_by_id IS NOT NULL) AND (completed_by_id IS NULL) = (result IS NULL))",
		}),
	}
}

// Fields of the Job.
func (Job) Fields() []ent.Field {
	return []ent.Field{
		typeID("job"),
		field.String("owner_id").Immutable().Annotations(entgql.Skip(entgql.SkipAll)),
		field.String("idempotency_key").NotEmpty().MaxLen(255).Immutable(),
		field.Bytes("fingerprint").Immutable().Annotations(entgql.Skip(entgql.SkipAll)),
		field.String("task").NotEmpty().Immutable(),
		field.String("task_version").NotEmpty().Immutable().Annotations(entgql.Type("String")),
		rawJSON("input", true, false),
		field.String("target").NotEmpty().Immutable(),
		field.Strings("fallbacks").Immutable().Annotations(entgql.Type("[String!]")),
		field.Int("hedge_after_ms").Optional().Nillable().Immutable().Annotations(entgql.Skip(entgql.SkipAll)),
		field.String("callback_url").Optional().Nillable().Immutable().Annotations(entgql.Skip(entgql.SkipAll)),
		field.String("traceparent").Optional().Nillable().MaxLen(55).Immutable().Annotations(entgql.Skip(entgql.SkipAll)).
			Comment("W3C trace context of the request that made the job."),
		field.Enum("state").
			Values("QUEUED", "RUNNING", "UNKNOWN", "WAITING", "SUCCEEDED", "FAILED", "CANCELLED").
			Annotations(entgql.OrderField("STATE")),
		field.Int("version").Default(1).Positive().
			Comment("Moves only when the result slot does: a claim, the final failure, a re-opening, a cancellation."),
		rawJSON("result", false, true),
		field.String("completed_by_id").Optional().Nillable().Annotations(entgql.Skip(entgql.SkipAll)),
		field.Int("last_event").Default(0).NonNegative().Annotations(entgql.Skip(entgql.SkipAll)).
			Comment("Number of the newest event; counted up under the row's lock, so that numbers have no gaps."),
		createdAt(),
		field.Time("updated_at").Default(now).Annotations(entgql.OrderField("UPDATED_AT")),
	}
}

// Edges of the Job.
func (Job) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("owner", Owner.Type).Ref("jobs").Field("owner_id").Unique().Required().Immutable().
			Annotations(entgql.Skip(entgql.SkipAll)),
		edge.From("version_of_task", TaskVersion.Type).Ref("jobs").Field("task_version").Unique().Required().Immutable().
			Annotations(entgql.Skip(entgql.SkipAll)),
		edge.To("attempts", Attempt.Type),
		edge.To("events", JobEvent.Type).Annotations(entgql.Skip(entgql.SkipAll)),
		// The foreign key is on the job, so that the claim is one statement.
		edge.From("completed_by", Attempt.Type).Ref("completes").Unique().Field("completed_by_id"),
	}
}

// Indexes of the Job.
func (Job) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("owner_id", "idempotency_key").Unique(),
		index.Fields("owner_id", "created_at", "id"),
		index.Fields("state", "created_at"),
		index.Fields("task_version"),
		// What retention looks for: the oldest jobs of each of these states. PostgreSQL writes an IN in another way each
		// time that it is asked, and every new migration would build the index anew.
		index.Fields("state", "updated_at").StorageKey("job_finished").
			Annotations(entsql.IndexWhere("state = 'SUCCEEDED' OR state = 'FAILED' OR state = 'CANCELLED'")),
		// How many jobs of an owner are not finished.
		index.Fields("owner_id").StorageKey("job_open").
			Annotations(entsql.IndexWhere("state = 'QUEUED' OR state = 'RUNNING' OR state = 'UNKNOWN' OR state = 'WAITING'")),
	}
}
