// Package jobs owns the life of jobs and attempts: it is the only code that moves a state. Every guard is enforced by
// the database; nothing here relies on a lock or a memory of this process.
//
// It imports ent, internal/store, internal/tasks, internal/viewer and contracts/gate. It knows no HTTP, no GraphQL and
// no provider.
package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"time"

	"go.jetify.com/typeid"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tasks"
)

// Queue takes an attempt's entry inside the caller's transaction: River's, in production.
type Queue interface {
	// Enqueue returns the entry's id. The entry is worked on at due or soon after it, by a process that knows the target's
	// provider; this one need not.
	Enqueue(ctx context.Context, tx *store.Tx, attemptID, target string, due time.Time) (int64, error)
	// EnqueueUnserved is Enqueue for an attempt whose provider no process seems to know: the first one to come takes it, and
	// refuses it if it does not know the provider either.
	EnqueueUnserved(ctx context.Context, tx *store.Tx, attemptID, target string, due time.Time) (int64, error)
	// Look says what is to be expected of the entries; those that are not in the answer are EntryLost. An entry that was
	// taken by a worker less than grace ago is EntryAlive, and so is one that has waited elsewhere for less than unserved.
	Look(ctx context.Context, entries []int64, grace, unserved time.Duration) (map[int64]Entry, error)
	// EnqueueCancel adds an entry, inside the transaction, by which the provider is told that what runs there by the attempt's
	// handle is of no use any more. It changes no state.
	EnqueueCancel(ctx context.Context, tx *store.Tx, attemptID string) error
	// Stop tells a worker of this process, if there is one, that nothing can come of the attempt any more.
	Stop(attemptID string)
}

// Entry is what is to be expected of a queue entry.
type Entry int

const (
	EntryLost      Entry = iota // it is gone, or was given to a worker that did nothing with it
	EntryAlive                  // this process or another will work on it
	EntryElsewhere              // it has waited long for a process that knows its provider; this one does not
)

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

// Metrics counts what operators watch.
type Metrics interface {
	// RaceLost: an answer came for an attempt or a job that was already settled, and was dropped.
	RaceLost()
	// AttemptSettled: an attempt ended in a terminal state, by via: worker, operator, owner, or
	// one of the Via constants.
	AttemptSettled(state, via string)
}

// Deps are the service's collaborators. All but Prices and Callbacks are required.
type Deps struct {
	Store     *store.Store
	Catalog   *tasks.Catalog
	Queue     Queue
	Gate      Gate
	Targets   Targets
	Prices    Prices    // nil: nothing has a price
	Callbacks Callbacks // nil: no callback URL is taken
	Notifier  Notifier
	Metrics   Metrics
	Logger    *slog.Logger
}

// Options of the service. Zero values mean the defaults in brackets.
type Options struct {
	Lease    time.Duration // how long a worker holds an attempt without a sign of life [15s]
	MaxInput int           // bytes of a job's input as JSON [256 KiB]
	// MaxAttempts is how many attempts a job may have before StartAttempt refuses another one [100]. What follows by
	// itself is not counted against it: the task's retries and route bound that.
	MaxAttempts int
	MaxOpenJobs int // of one owner, not finished [no limit]
}

// Service is the life of jobs. It is safe for concurrent use, by any number of processes on one database.
type Service struct {
	store     *store.Store
	catalog   *tasks.Catalog
	queue     Queue
	gate      Gate
	targets   Targets
	prices    Prices
	callbacks Callbacks
	notifier  Notifier
	metrics   Metrics
	log       *slog.Logger

	lease    time.Duration
	maxInput int

	maxAttempts int
	maxOpenJobs int
	// sweepBatch is how many attempts a sweep reads at a time.
	sweepBatch int

	owners   *known  // owner rows that are there
	versions *parsed // definitions by digest
	jitter   func() float64
}

// New returns a service.
func New(d Deps, o Options) *Service {
	if d.Callbacks == nil {
		d.Callbacks = noCallbacks{}
	}
	if d.Prices == nil {
		d.Prices = noPrices{}
	}
	return &Service{
		store: d.Store, catalog: d.Catalog, queue: d.Queue, gate: d.Gate, targets: d.Targets, prices: d.Prices, callbacks: d.Callbacks,
		notifier: d.Notifier, metrics: d.Metrics, log: d.Logger,
		lease: cmp.Or(o.Lease, 15*time.Second), maxInput: cmp.Or(o.MaxInput, 256<<10), maxAttempts: cmp.Or(o.MaxAttempts, 100), maxOpenJobs: o.MaxOpenJobs,
		sweepBatch: sweepBatch,
		owners:     newKnown(), versions: newParsed(), jitter: rand.Float64,
	}
}

// Lease is how long a worker holds an attempt without a sign of life.
func (s *Service) Lease() time.Duration { return s.lease }

// now is this process's clock in the precision that both databases keep. It dates rows; nothing is decided by it but when
// a retry is due.
func (s *Service) now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func newID(prefix string) string { return typeid.Must(typeid.WithPrefix(prefix)).String() }

// CreateInput is a createJob request. Nil pointers and a nil Fallbacks mean left out.
type CreateInput struct {
	IdempotencyKey *string
	Task           string
	Input          json.RawMessage
	Target         *string
	Fallbacks      []string // nil: the route's; empty: none
	HedgeAfterMS   *int
	CallbackURL    *string
	Traceparent    *string // of the request, as W3C writes it; no part of the intent
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
