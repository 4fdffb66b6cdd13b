// Package jobs owns the life of jobs and attempts: it is the only code that moves a state. Every guard is enforced by
// the database; nothing here relies on a lock or a memory of this process.
//
// It imports ent, internal/store, internal/tasks, internal/viewer and contracts/gate. It knows no HTTP, no GraphQL and
// no provider.
package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tasks"
)

// Queue takes an attempt's entry inside the caller's transaction: River's, in production.
type Queue interface {
	// Enqueue returns the entry's id. The entry is worked on at due or soon after it.
	Enqueue(ctx context.Context, tx *store.Tx, attemptID string, due time.Time) (int64, error)
}

// Gate says whether a target may be used as a fallback now.
type Gate interface {
	Check(ctx context.Context, q *ent.Client, task *tasks.Definition, target string) (gate.Decision, error)
}

// Targets says which targets this process can send to.
type Targets interface {
	Known(target string) bool
}

// Notifier hears of committed changes, so that watchers look again.
type Notifier interface {
	JobChanged(jobID string)
}

// Options of the service. Zero values mean the defaults in brackets.
type Options struct {
	Lease    time.Duration // how long a worker holds an attempt without a sign of life [15s]
	MaxInput int           // bytes of a job's input as JSON [256 KiB]
	Logger   *slog.Logger  // [slog.Default()]
}

// CreateInput is a createJob request. Nil pointers and a nil Fallbacks mean left out.
type CreateInput struct {
	IdempotencyKey *string
	Task           string
	Input          json.RawMessage
	Target         *string
	Fallbacks      []string // nil: the route's; empty: none
	HedgeAfterMS   *int
	CallbackURL    *string
}

// Created is the answer to a createJob request.
type Created struct {
	Job      *ent.Job
	Replayed bool
}

// AttemptAndJob is an attempt with its job, as they are after the change.
type AttemptAndJob struct {
	Attempt *ent.Attempt
	Job     *ent.Job
}

// Resolution is an operator's verdict on an attempt that nobody else can settle.
type Resolution struct {
	AttemptID string
	Outcome   attempt.State   // SUCCEEDED, FAILED or CANCELLED
	Result    json.RawMessage // required for SUCCEEDED, refused otherwise
	Note      string
}
