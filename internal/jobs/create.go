package jobs

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

// maxHedgeAfterMS is a day.
const maxHedgeAfterMS = 24 * 60 * 60 * 1000

// firstEvents is how many events a new job has: its own creation and its first attempt's.
const firstEvents = 2

// insertTries is how often Create inserts: once more is enough, unless a job of this key is made and purged in between.
const insertTries = 3

// errPurged: the job that the insert met was removed before it could be read. Nothing was written.
var errPurged = errors.New("jobs: the job of this key has just been removed")

// plan is what a valid input asks for, with the server's defaults.
type plan struct {
	task      *tasks.Definition
	target    string
	fallbacks []string
}

// Create makes one job per owner and idempotency key. The job, its first attempt, its first events and the queue entry are
// one transaction; whether the key is new is the unique constraint's decision. The same intent again is a replay and
// starts no work; another intent is an *IdempotencyConflictError; an *InvalidInputError leaves the key unused.
func (s *Service) Create(ctx context.Context, in CreateInput) (Created, error) {
	v, ok := viewer.FromContext(ctx)
	if !ok {
		return Created{}, ErrUnauthenticated
	}
	if err := checkKey(in.IdempotencyKey); err != nil {
		return Created{}, err
	}
	fingerprint, err := in.fingerprint()
	if err != nil {
		return Created{}, err
	}
	sys := viewer.NewSystemContext(ctx)
	p, bad := s.plan(in)
	if bad != nil {
		// The configuration may have changed since the key was used: a retry must still meet its job.
		existing, err := s.byKey(sys, s.store.Client(), v.OwnerID(), *in.IdempotencyKey)
		if err != nil {
			return Created{}, err
		}
		if existing != nil {
			return replay(existing, fingerprint)
		}
		return Created{}, bad
	}
	if err := s.ensureOwner(sys, v); err != nil {
		return Created{}, err
	}
	if err := s.ensureVersion(sys, p.task); err != nil {
		return Created{}, err
	}
	var out Created
	for range insertTries {
		err = s.store.Tx(sys, func(tx *store.Tx) error {
			out, err = s.insert(sys, tx, v, in, p, fingerprint)
			return err
		})
		if !errors.Is(err, errPurged) {
			break
		}
	}
	if err != nil {
		return Created{}, err
	}
	return out, nil
}

// insert decides by the constraint; it never looks first.
func (s *Service) insert(sys context.Context, tx *store.Tx, v viewer.Viewer, in CreateInput, p plan, fingerprint []byte) (Created, error) {
	now := s.now()
	id, err := tx.Job.Create().SetID(newID("job")).SetOwnerID(v.OwnerID()).SetIdempotencyKey(*in.IdempotencyKey).
		SetFingerprint(fingerprint).SetTask(p.task.Name).SetTaskVersion(p.task.Digest).SetInput(in.Input).
		SetTarget(p.target).SetFallbacks(p.fallbacks).
		SetNillableHedgeAfterMs(in.HedgeAfterMS).SetNillableCallbackURL(in.CallbackURL).SetNillableTraceparent(in.Traceparent).
		SetState(job.StateQUEUED).SetVersion(1).SetLastEvent(firstEvents).SetCreatedAt(now).SetUpdatedAt(now).
		OnConflictColumns(job.FieldOwnerID, job.FieldIdempotencyKey).DoNothing().ID(sys)
	if errors.Is(err, sql.ErrNoRows) {
		existing, err := s.byKey(sys, tx.Client, v.OwnerID(), *in.IdempotencyKey)
		if err != nil {
			return Created{}, err
		}
		if existing == nil {
			return Created{}, errPurged
		}
		return replay(existing, fingerprint)
	}
	if err != nil {
		return Created{}, fmt.Errorf("insert job: %w", err)
	}
	if err := s.checkOpenJobs(sys, tx, v.OwnerID()); err != nil {
		return Created{}, err
	}
	// The new row is this transaction's own: nobody else can see or lock it yet.
	j := &ent.Job{ID: id, Version: 1, State: job.StateQUEUED}
	c := &change{ctx: sys, s: s, tx: tx, job: j, by: v, state: j.State}
	c.event(EventJobCreated, "", "", string(job.StateQUEUED), detail{"task": p.task.Name, "taskVersion": p.task.Digest, "target": p.target})
	if _, err := c.add(p.target, attempt.ReasonPRIMARY, now, nil); err != nil {
		return Created{}, err
	}
	if err := c.writeEvents(); err != nil {
		return Created{}, err
	}
	row, err := tx.Job.Get(sys, id)
	if err != nil {
		return Created{}, fmt.Errorf("read job %s: %w", id, err)
	}
	return Created{Job: row}, nil
}

// replay decides what an existing job of the same owner and key means for a request. It never returns a job as if it
// matched when it does not, and never changes it.
func replay(existing *ent.Job, fingerprint []byte) (Created, error) {
	if !bytes.Equal(existing.Fingerprint, fingerprint) {
		return Created{}, &IdempotencyConflictError{Job: existing}
	}
	return Created{Job: existing, Replayed: true}, nil
}

func (s *Service) byKey(sys context.Context, q *ent.Client, ownerID, key string) (*ent.Job, error) {
	j, err := q.Job.Query().Where(job.OwnerID(ownerID), job.IdempotencyKey(key)).Only(sys)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up the idempotency key: %w", err)
	}
	return j, nil
}

// plan checks everything that depends on this server's configuration.
func (s *Service) plan(in CreateInput) (plan, error) {
	task, ok := s.catalog.Get(in.Task)
	limit := s.maxInput
	if ok && task.MaxInputBytes > 0 {
		limit = min(limit, task.MaxInputBytes)
	}
	if len(in.Input) > limit {
		return plan{}, beyond(CodeInputTooLarge, "/input", "is %d bytes as JSON; at most %d are taken", len(in.Input), limit)
	}
	if !ok {
		return plan{}, invalid("/task", "there is no such task")
	}
	p := plan{task: task, target: task.Target, fallbacks: task.Fallbacks}
	var issues []Issue
	noTarget := "is required here: this server does not have the task's own target"
	if in.Target != nil {
		p.target, noTarget = *in.Target, "there is no such target"
	}
	if !s.targets.Known(p.target) {
		issues = append(issues, Issue{"/target", noTarget})
	}
	if in.Fallbacks != nil {
		p.fallbacks = in.Fallbacks
		for i, f := range in.Fallbacks {
			if !s.targets.Known(f) {
				issues = append(issues, Issue{"/fallbacks/" + strconv.Itoa(i), "there is no such target"})
			}
		}
	}
	p.fallbacks = distinct(p.fallbacks, p.target)
	if ms := in.HedgeAfterMS; ms != nil && (*ms < 0 || *ms > maxHedgeAfterMS) {
		issues = append(issues, Issue{"/hedgeAfterMs", "must be from 0 to " + strconv.Itoa(maxHedgeAfterMS)})
	}
	if in.CallbackURL != nil {
		if err := s.callbacks.CheckURL(*in.CallbackURL); err != nil {
			issues = append(issues, Issue{"/callbackUrl", err.Error()})
		}
	}
	for _, i := range task.InputSchema.Validate(in.Input) {
		issues = append(issues, Issue{"/input" + i.Pointer, i.Message})
	}
	if len(issues) > 0 {
		return plan{}, &InvalidInputError{Issues: issues}
	}
	return p, nil
}

// distinct leaves out the target itself and what was named before.
func distinct(fallbacks []string, target string) []string {
	out := []string{}
	for _, f := range fallbacks {
		if f != target && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// ignoreNoRows hides what ON CONFLICT DO NOTHING says on PostgreSQL when the row was there.
func ignoreNoRows(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}
