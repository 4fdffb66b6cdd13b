// Package schema defines the entities by hand; everything else under ent is generated from it.
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

// Attempt is one try of a job at a target.
type Attempt struct{ ent.Schema }

// Annotations of the Attempt.
func (Attempt) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entgql.RelayConnection(),
		entgql.QueryField("attempts"),
		entsql.Checks(map[string]string{
			"attempts_state":    "state IN ('STARTING','RUNNING','UNKNOWN','SUCCEEDED','FAILED','CANCELLED','SUPERSEDED')",
			"attempts_reason":   "reason IN ('PRIMARY','RETRY','FALLBACK','HEDGE','MANUAL')",
			"attempts_finished": "((state IN ('STARTING','RUNNING','UNKNOWN')) = (finished_at IS NULL))",
		}),
	}
}

// Fields of the Attempt.
func (Attempt) Fields() []ent.Field {
	internal := entgql.Skip(entgql.SkipAll)
	inError := entgql.Skip(entgql.SkipType)
	return []ent.Field{
		typeID("att"),
		field.String("job_id").Immutable().Annotations(internal),
		field.Int("number").Positive().Immutable().Annotations(entgql.OrderField("NUMBER")),
		field.String("target").NotEmpty().Immutable(),
		field.Enum("reason").Values("PRIMARY", "RETRY", "FALLBACK", "HEDGE", "MANUAL").Immutable(),
		field.Enum("state").
			Values("STARTING", "RUNNING", "UNKNOWN", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED").
			Annotations(entgql.OrderField("STATE")),
		field.Int("job_version").Positive().Immutable().Annotations(internal).
			Comment("The job's version when the attempt was created: the only number its claim may use."),
		field.String("error_code").Optional().Nillable().Annotations(inError),
		field.String("error_message").Optional().Nillable().Annotations(internal),
		field.Bool("error_retryable").Optional().Nillable().Annotations(internal),
		field.Int("error_retry_after_ms").Optional().Nillable().Annotations(internal),
		field.Int("input_tokens").Optional().Nillable().Annotations(internal),
		field.Int("cached_input_tokens").Optional().Nillable().Annotations(internal).
			Comment("The part of input_tokens that the provider took from its cache."),
		field.Int("output_tokens").Optional().Nillable().Annotations(internal),
		field.String("cost").Optional().Nillable().Annotations(internal),
		field.String("currency").Optional().Nillable().Annotations(internal),
		createdAt(),
		field.Time("due_at").Default(now).Annotations(internal).
			Comment("Not sent before: the end of a retry's back-off."),
		field.Time("sent_at").Optional().Nillable().
			Comment("Committed before dialling; once set, the request is never sent again but under the same key, to a provider that is declared idempotent."),
		field.String("sent_to").Optional().Nillable().Annotations(internal).
			Comment("Which endpoint knows the attempt's key; the request is sent again to no other."),
		field.Time("acknowledged_at").Optional().Nillable(),
		field.Time("finished_at").Optional().Nillable(),
		field.String("provider_request_id").Optional().Nillable().Annotations(entgql.MapsTo("providerRequestId")),
		field.String("provider_handle").Optional().Nillable().Annotations(internal),
		field.Int64("queue_entry").Optional().Nillable().Annotations(internal).
			Comment("The queue entry that may send the attempt; any other does nothing."),
		field.String("lease_token").Optional().Nillable().Annotations(internal),
		field.Time("lease_expires_at").Optional().Nillable().Annotations(internal).
			Comment("By the database's clock."),
		field.Time("ask_at").Optional().Nillable().Annotations(internal).
			Comment("UNKNOWN: the provider is not asked again, and the request not re-sent, before; by the database's clock."),
		field.Int("asked").NonNegative().Default(0).Annotations(internal).
			Comment("UNKNOWN: how often the provider was asked or the request re-sent."),
		field.Time("resent_at").Optional().Nillable().Annotations(internal).
			Comment("The last re-send to a provider that is declared idempotent; by the database's clock."),
	}
}

// Edges of the Attempt.
func (Attempt) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("job", Job.Type).Ref("attempts").Field("job_id").Unique().Required().Immutable(),
		edge.To("completes", Job.Type).Unique().
			Annotations(entgql.Skip(entgql.SkipAll), entsql.OnDelete(entsql.Restrict)),
		edge.To("events", JobEvent.Type).Annotations(entgql.Skip(entgql.SkipAll)),
	}
}

// Indexes of the Attempt.
func (Attempt) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("job_id", "number").Unique(),
		// The second line behind the job row's lock.
		index.Fields("job_id").Unique().StorageKey("attempt_one_starting").
			Annotations(entsql.IndexWhere("state = 'STARTING'")),
		index.Fields("lease_expires_at").StorageKey("attempt_leased").
			Annotations(entsql.IndexWhere("lease_expires_at IS NOT NULL")),
		index.Fields("due_at").StorageKey("attempt_waiting").Annotations(entsql.IndexWhere("state = 'STARTING'")),
		index.Fields("ask_at").StorageKey("attempt_unknown").Annotations(entsql.IndexWhere("state = 'UNKNOWN'")),
		index.Fields("state", "created_at"),
	}
}
