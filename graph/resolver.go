// Package graph answers GraphQL requests: it translates, calls internal/jobs for every change, and reads through ent
// under the viewer's privacy policy.
//
// Written code lives here; generated code in graph/generated and graph/model.
package graph

import (
	"context"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/events"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/retention"
	"github.com/docket-gateway/docket/internal/tasks"
)

// Jobs changes jobs on behalf of the context's viewer: *jobs.Service.
type Jobs interface {
	Create(ctx context.Context, in jobs.CreateInput) (jobs.Created, error)
	StartAttempt(ctx context.Context, jobID string, target *string) (jobs.AttemptAndJob, error)
	CancelAttempt(ctx context.Context, attemptID string, note *string) (jobs.AttemptAndJob, error)
	CancelJob(ctx context.Context, jobID string, note *string) (*ent.Job, error)
	ResolveAttempt(ctx context.Context, r jobs.Resolution) (jobs.AttemptAndJob, error)
}

// Catalog is the set of tasks that new jobs are created with: *tasks.Catalog.
type Catalog interface {
	All() []*tasks.Definition
	Get(name string) (*tasks.Definition, bool)
}

// Target is something that this server can send attempts to.
type Target struct {
	ID        string // provider/model
	Provider  string
	Model     string
	Available bool
}

// TargetLister lists the configured targets in a stable order.
type TargetLister interface{ Targets() []Target }

// GateStatus says whether a target may be used as a fallback for a task now, and why.
type GateStatus func(ctx context.Context, task *tasks.Definition, target string) (gate.Decision, error)

// Deps is what the resolvers need. All fields but Retention are required.
type Deps struct {
	Client   *ent.Client
	Jobs     Jobs
	Follower *events.Follower
	Catalog  Catalog
	Targets  TargetLister
	Gate     GateStatus
	// Retention tells how long keys are protected; the zero value is for ever.
	Retention retention.Policy
}

// Resolver is the root of all resolvers.
type Resolver struct {
	Deps
	owners *owners
}

// NewResolver returns the root of all resolvers.
func NewResolver(d Deps) *Resolver {
	return &Resolver{Deps: d, owners: newOwners(d.Client)}
}
