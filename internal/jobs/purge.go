package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/jobevent"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/viewer"
)

// finishedStates are those in which retention may remove a job.
var finishedStates = []job.State{job.StateSUCCEEDED, job.StateFAILED, job.StateCANCELLED}

// inFinishedStates says the same in the words of the index job_finished: SQLite uses a partial index only if it can see
// that the condition is the same.
const inFinishedStates = "(state = 'SUCCEEDED' OR state = 'FAILED' OR state = 'CANCELLED')"

// Finished reports whether nothing will happen to a job in that state unless its owner asks for it.
func Finished(s job.State) bool { return slices.Contains(finishedStates, s) }

// Purge removes at most batch finished jobs whose last event is older than age by the database's clock, with
// their attempts and events, in one transaction. It returns how many it removed; batch of them means that there may be
// more. Any number of processes may purge at once: a job that another transaction holds is left for the next time.
// From then on the job's key makes a new job.
func (s *Service) Purge(ctx context.Context, age time.Duration, batch int) (int, error) {
	if age <= 0 || batch <= 0 {
		return 0, fmt.Errorf("purge jobs: age %s and batch %d must be positive", age, batch)
	}
	sys := viewer.NewSystemContext(ctx)
	ids, err := s.outdated(sys, age, batch)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	var n int
	err = s.store.Tx(sys, func(tx *store.Tx) (err error) {
		n, err = s.purge(sys, tx, age, ids)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("purge jobs: %w", err)
	}
	return n, nil
}

// outdated only proposes: nothing is locked, and what it says may be wrong a moment later. Each state is asked for by
// itself, so that both databases read the oldest jobs from the index and nothing else; over all states at once they sort
// the whole backlog for each batch, or look through all jobs when few are outdated.
func (s *Service) outdated(sys context.Context, age time.Duration, batch int) ([]string, error) {
	var all []string
	for _, state := range finishedStates {
		ids, err := s.store.Client().Job.Query().Where(s.oldest(state, age)).Limit(batch - len(all)).IDs(sys)
		if err != nil {
			return nil, fmt.Errorf("find outdated jobs: %w", err)
		}
		if all = append(all, ids...); len(all) == batch {
			break
		}
	}
	return all, nil
}

// oldest finds the jobs in one state that may go, in order of their last event.
func (s *Service) oldest(state job.State, age time.Duration) predicate.Job {
	return func(sel *entsql.Selector) {
		job.And(job.StateEQ(state), s.quietFor(age), noneOpen)(sel)
		sel.OrderBy(sel.C(job.FieldUpdatedAt))
	}
}

// purge removes those of the jobs that may be removed. They are locked first, and looked at again under the lock: in the
// meantime an owner may have re-opened one.
func (s *Service) purge(sys context.Context, tx *store.Tx, age time.Duration, ids []string) (int, error) {
	lock := tx.Job.Query().Where(job.IDIn(ids...), s.quietFor(age))
	if s.store.Postgres() {
		lock = lock.ForUpdate(entsql.WithLockAction(entsql.SkipLocked))
	}
	ids, err := lock.IDs(sys)
	if err != nil {
		return 0, fmt.Errorf("lock jobs: %w", err)
	}
	// A statement of its own: the one that locks sees other tables as they were when it began.
	ids, err = tx.Job.Query().Where(job.IDIn(ids...), noneOpen).IDs(sys)
	if err != nil {
		return 0, fmt.Errorf("look for open attempts: %w", err)
	}
	if len(ids) == 0 {
		return 0, nil
	}
	// A job and its winner refer to each other. The job lets go first, inside of this transaction alone, in a state that
	// the checks allow. Cascades would do without, but they would turn any stray DELETE into a loss of attempts, and
	// SQLite cannot change a foreign key without building its tables anew.
	_, err = tx.Job.Update().Where(job.IDIn(ids...), job.StateEQ(job.StateSUCCEEDED)).
		SetState(job.StateCANCELLED).ClearCompletedBy().ClearResult().Save(sys)
	if err != nil {
		return 0, fmt.Errorf("detach winners: %w", err)
	}
	if _, err := tx.JobEvent.Delete().Where(jobevent.JobIDIn(ids...)).Exec(sys); err != nil {
		return 0, fmt.Errorf("remove events: %w", err)
	}
	if _, err := tx.Attempt.Delete().Where(attempt.JobIDIn(ids...), attempt.StateNotIn(openStates...)).Exec(sys); err != nil {
		return 0, fmt.Errorf("remove attempts: %w", err)
	}
	n, err := tx.Job.Delete().Where(job.IDIn(ids...)).Exec(sys)
	if err != nil {
		return 0, fmt.Errorf("remove jobs: %w", err)
	}
	return n, nil
}

// quietFor finds finished jobs whose last event is older than age. The clock is read once, by a subquery: PostgreSQL would
// compare every row of the index with a clock that moves.
func (s *Service) quietFor(age time.Duration) predicate.Job {
	return func(sel *entsql.Selector) {
		sel.Where(entsql.And(
			entsql.ExprP(inFinishedStates),
			entsql.ExprP(sel.C(job.FieldUpdatedAt)+" < (SELECT "+s.store.Now(-age)+")"),
		))
	}
}

// noneOpen finds jobs without an open attempt. No finished job has one; should it have, it stays for somebody to look at.
func noneOpen(sel *entsql.Selector) {
	a := entsql.Table(attempt.Table)
	open := make([]any, len(openStates))
	for i, s := range openStates {
		open[i] = s
	}
	sel.Where(entsql.NotExists(entsql.Select(a.C(attempt.FieldID)).From(a).Where(entsql.And(
		entsql.ColumnsEQ(a.C(attempt.FieldJobID), sel.C(job.FieldID)),
		entsql.In(a.C(attempt.FieldState), open...),
	))))
}
