package schema

import (
	"context"

	"entgo.io/ent"

	gen "github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/jobevent"
	"github.com/docket-gateway/docket/ent/owner"
	"github.com/docket-gateway/docket/ent/privacy"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Every entity is closed unless a rule opens it: no viewer, no rows. Persons read their own rows, operators read all,
// and only Docket itself writes; internal/jobs checks who asks before it does.

// Policy of the Owner.
func (Owner) Policy() ent.Policy { return policy(ownRows) }

// Policy of the Job.
func (Job) Policy() ent.Policy { return policy(ownRows) }

// Policy of the Attempt.
func (Attempt) Policy() ent.Policy { return policy(ownRows) }

// Policy of the JobEvent.
func (JobEvent) Policy() ent.Policy { return policy(ownRows) }

// Policy of the TaskVersion: it holds prompts, so only Docket itself reads it.
func (TaskVersion) Policy() ent.Policy { return policy() }

// Policy of the ContractResult: it belongs to no owner, and whoever is known may learn which targets passed.
func (ContractResult) Policy() ent.Policy { return policy(anyViewer) }

// Policy of the GateEvent: as of the results that it tells of.
func (GateEvent) Policy() ent.Policy { return policy(anyViewer) }

// Policy of the APIKey: nobody reads it through a request, not even its owner or an operator.
func (APIKey) Policy() ent.Policy { return policy() }

func policy(reads ...privacy.QueryRule) ent.Policy {
	query := append(privacy.QueryPolicy{systemReads()}, reads...)
	return privacy.Policy{
		Query:    append(query, privacy.AlwaysDenyRule()),
		Mutation: privacy.MutationPolicy{systemWrites(), privacy.AlwaysDenyRule()},
	}
}

func systemReads() privacy.QueryRule {
	return privacy.QueryRuleFunc(func(ctx context.Context, _ ent.Query) error {
		if v, ok := viewer.FromContext(ctx); ok && v.System() {
			return privacy.Allow
		}
		return privacy.Skip
	})
}

func systemWrites() privacy.MutationRule {
	return privacy.MutationRuleFunc(func(ctx context.Context, _ ent.Mutation) error {
		if v, ok := viewer.FromContext(ctx); ok && v.System() {
			return privacy.Allow
		}
		return privacy.Skip
	})
}

var anyViewer = privacy.QueryRuleFunc(func(ctx context.Context, _ ent.Query) error {
	if _, ok := viewer.FromContext(ctx); ok {
		return privacy.Allow
	}
	return privacy.Skip
})

// ownRows narrows a query to the viewer's own rows, unless the viewer sees all.
var ownRows = privacy.QueryRuleFunc(func(ctx context.Context, q ent.Query) error {
	v, ok := viewer.FromContext(ctx)
	if !ok {
		return privacy.Skip
	}
	if v.SeesAll() {
		return privacy.Allow
	}
	id := v.OwnerID()
	switch q := q.(type) {
	case *gen.OwnerQuery:
		q.Where(owner.ID(id))
	case *gen.JobQuery:
		q.Where(job.OwnerID(id))
	case *gen.AttemptQuery:
		q.Where(attempt.HasJobWith(job.OwnerID(id)))
	case *gen.JobEventQuery:
		q.Where(jobevent.HasJobWith(job.OwnerID(id)))
	default:
		return privacy.Denyf("no rule for %T", q)
	}
	return privacy.Allow
})
