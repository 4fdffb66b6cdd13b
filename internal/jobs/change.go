package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Types of events. A change of an attempt carries from and to, and so does a change of the job.
const (
	EventJobCreated      = "JOB_CREATED"
	EventJobState        = "JOB_STATE"
	EventAttemptCreated  = "ATTEMPT_CREATED"
	EventAttemptState    = "ATTEMPT_STATE"
	EventAttemptRequeued = "ATTEMPT_REQUEUED"
	EventAttemptResent   = "ATTEMPT_RESENT"
	EventFallbackSkipped = "FALLBACK_SKIPPED"
)

// errLost means that a guarded update met no row: somebody else was first. It rolls the transaction back.
var errLost = errors.New("jobs: somebody else settled it first")

// detail is an event's free part. It never holds input, output or keys.
type detail map[string]any

// change is one transaction on one job, whose row is locked. What moves goes through it, so that every change and its
// event are committed together and events are numbered without gaps.
type change struct {
	ctx      context.Context // acts for the system
	s        *Service
	tx       *store.Tx
	job      *ent.Job
	attempts []*ent.Attempt // all of the job, in order of number
	by       viewer.Viewer
	via      string // how an outcome became known, if not by the attempt's own request

	state   job.State // the job's new state
	reset   bool      // the result slot moves: version + 1
	pending []*ent.JobEventCreate
	end     *ent.JobEventMutation // the event that says that the job is over
}

// change locks the job, runs f and writes what f did. by is who asked.
func (s *Service) change(ctx context.Context, by viewer.Viewer, jobID string, f func(c *change) error) error {
	sys := viewer.NewSystemContext(ctx)
	return s.store.Tx(sys, func(tx *store.Tx) error {
		j, err := tx.LockJob(sys, jobID)
		if ent.IsNotFound(err) { // purged since the caller has seen it
			return fmt.Errorf("lock job %s: %w", jobID, ErrNotFound)
		}
		if err != nil {
			return fmt.Errorf("lock job %s: %w", jobID, err)
		}
		return s.changeLocked(sys, tx, j, by, f)
	})
}

func (s *Service) changeLocked(sys context.Context, tx *store.Tx, j *ent.Job, by viewer.Viewer, f func(c *change) error) error {
	as, err := tx.Attempt.Query().Where(attempt.JobID(j.ID)).Order(ent.Asc(attempt.FieldNumber)).All(sys)
	if err != nil {
		return fmt.Errorf("read the attempts of job %s: %w", j.ID, err)
	}
	c := &change{ctx: sys, s: s, tx: tx, job: j, attempts: as, by: by, state: j.State}
	if err := f(c); err != nil {
		return err
	}
	return c.flush()
}

// find returns one of the job's attempts as it is under the lock.
func (c *change) find(attemptID string) (*ent.Attempt, error) {
	for _, a := range c.attempts {
		if a.ID == attemptID {
			return a, nil
		}
	}
	return nil, fmt.Errorf("attempt %s of job %s: %w", attemptID, c.job.ID, ErrNotFound)
}

// move is the only update of an attempt's state. It returns errLost if the attempt is not in a state that
// may move there.
func (c *change) move(a *ent.Attempt, to attempt.State, d detail, set func(u *ent.AttemptUpdate), guards ...predicate.Attempt) error {
	u := c.tx.Attempt.Update().
		Where(attempt.ID(a.ID), attempt.JobID(c.job.ID), attempt.StateIn(sources(to)...)).Where(guards...).SetState(to)
	if to != attempt.StateRUNNING { // RUNNING alone is still a worker's
		u.ClearLeaseToken().ClearLeaseExpiresAt()
	}
	ended := c.s.now()
	if !openState(to) {
		u.SetFinishedAt(ended)
	}
	if set != nil {
		set(u)
	}
	n, err := u.Save(c.ctx)
	if err != nil {
		return fmt.Errorf("move attempt %s to %s: %w", a.ID, to, err)
	}
	if n != 1 {
		return errLost
	}
	if c.via != "" && to != attempt.StateSUPERSEDED { // those end because of another attempt
		d = maps.Clone(d)
		if d == nil {
			d = detail{}
		}
		d["settledBy"] = c.via
	}
	c.event(EventAttemptState, a.ID, string(a.State), string(to), d)
	a.State = to
	if !openState(to) {
		a.FinishedAt = &ended
		via := c.settledVia()
		c.tx.AfterCommit(func() { c.s.metrics.AttemptSettled(string(to), via) })
	}
	if to == attempt.StateCANCELLED || to == attempt.StateSUPERSEDED {
		id := a.ID
		c.tx.AfterCommit(func() { c.s.queue.Stop(id) })
		if a.ProviderHandle != nil {
			return c.cancelAtProvider(id)
		}
	}
	return nil
}

// settledVia says in one of few words who ended an attempt.
func (c *change) settledVia() string {
	switch {
	case c.via != "":
		return c.via
	case c.by.System():
		return "worker"
	case c.by.Operator:
		return "operator"
	default:
		return "owner"
	}
}

// add creates the job's next attempt with its queue entry. The caller has made sure that nothing blocks it.
func (c *change) add(target string, reason attempt.Reason, due time.Time, d detail) (*ent.Attempt, error) {
	number := 1
	if n := len(c.attempts); n > 0 {
		number = c.attempts[n-1].Number + 1
	}
	version := c.job.Version
	if c.reset {
		version++
	}
	id := newID("att")
	entry, err := c.s.queue.Enqueue(c.ctx, c.tx, id, target, due)
	if err != nil {
		return nil, fmt.Errorf("enqueue attempt %d of job %s: %w", number, c.job.ID, err)
	}
	a, err := c.tx.Attempt.Create().SetID(id).SetJobID(c.job.ID).SetNumber(number).SetTarget(target).SetReason(reason).
		SetState(attempt.StateSTARTING).SetJobVersion(version).SetCreatedAt(c.s.now()).SetDueAt(due).SetQueueEntry(entry).
		Save(c.ctx)
	if err != nil {
		return nil, fmt.Errorf("create attempt %d of job %s: %w", number, c.job.ID, err)
	}
	c.attempts = append(c.attempts, a)
	if d == nil {
		d = detail{}
	}
	d["target"], d["reason"] = target, reason
	c.event(EventAttemptCreated, a.ID, "", string(attempt.StateSTARTING), d)
	return a, nil
}

// becomes sets the job's state. reset is for the changes that move the result slot.
func (c *change) becomes(s job.State, reset bool, d detail) {
	c.reset = c.reset || reset
	if s == c.state {
		return
	}
	c.event(EventJobState, "", string(c.state), string(s), d)
	c.state, c.end = s, nil
	if Finished(s) {
		c.end = c.pending[len(c.pending)-1].Mutation()
	}
}

// event appends to the job's log.
func (c *change) event(kind, attemptID, from, to string, d detail) {
	e := c.tx.JobEvent.Create().SetJobID(c.job.ID).SetNumber(c.job.LastEvent + len(c.pending) + 1).SetType(kind).SetAt(c.s.now())
	if attemptID != "" {
		e.SetAttemptID(attemptID)
	}
	if from != "" {
		e.SetFrom(from)
	}
	if to != "" {
		e.SetTo(to)
	}
	if raw := c.signed(d); raw != nil {
		e.SetDetail(raw)
	}
	c.pending = append(c.pending, e)
}

// signed adds who acted, if it was a person.
func (c *change) signed(d detail) json.RawMessage {
	if !c.by.System() {
		if d == nil {
			d = detail{}
		}
		d["by"] = c.by.Subject
		if c.by.Operator {
			d["operator"] = true
		}
	}
	if len(d) == 0 {
		return nil
	}
	raw, err := json.Marshal(d)
	if err != nil { // details are strings, numbers and bools
		panic(fmt.Sprintf("jobs: event detail: %v", err))
	}
	return raw
}

// flush writes the events and the job's row.
func (c *change) flush() error {
	if len(c.pending) == 0 {
		return nil
	}
	if err := c.writeEvents(); err != nil {
		return err
	}
	c.job.LastEvent += len(c.pending)
	c.job.UpdatedAt = c.s.now()
	u := c.tx.Job.Update().Where(job.ID(c.job.ID)).SetLastEvent(c.job.LastEvent).SetUpdatedAt(c.job.UpdatedAt)
	if c.state != c.job.State {
		u.SetState(c.state)
		c.job.State = c.state
	}
	if c.reset {
		u.AddVersion(1)
		c.job.Version++
	}
	if err := u.Exec(c.ctx); err != nil {
		return fmt.Errorf("update job %s: %w", c.job.ID, err)
	}
	return c.announce()
}

// writeEvents writes the events and tells watchers after the commit.
func (c *change) writeEvents() error {
	if err := c.tx.JobEvent.CreateBulk(c.pending...).Exec(c.ctx); err != nil {
		return fmt.Errorf("write the events of job %s: %w", c.job.ID, err)
	}
	id := c.job.ID
	c.tx.AfterCommit(func() { c.s.notifier.JobChanged(id) })
	return nil
}

// fresh re-reads an attempt, so that the caller gets what the database holds.
func (c *change) fresh(attemptID string) (*ent.Attempt, error) {
	a, err := c.tx.Attempt.Get(c.ctx, attemptID)
	if err != nil {
		return nil, fmt.Errorf("read attempt %s: %w", attemptID, err)
	}
	return a, nil
}

func openState(s attempt.State) bool { return len(moves[s]) > 0 }
