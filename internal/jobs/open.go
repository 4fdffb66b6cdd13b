package jobs

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/store"
)

// openJobs is written as the index job_open has it, or SQLite would not use that. The parentheses are not ent's to add.
const openJobs = "(state = 'QUEUED' OR state = 'RUNNING' OR state = 'UNKNOWN' OR state = 'WAITING')"

// checkOpenJobs returns an *InvalidInputError if the owner has too many jobs that are not finished. It is asked by the
// transaction that has inserted the new one, so that a key which is in use was answered before, and whoever asks at the same
// time waits for this one's end. A finished job that is started again is not asked about, but counts.
func (s *Service) checkOpenJobs(sys context.Context, tx *store.Tx, ownerID string) error {
	if s.maxOpenJobs <= 0 {
		return nil
	}
	if err := tx.LockOwner(sys, ownerID); err != nil {
		return fmt.Errorf("lock owner %s: %w", ownerID, err)
	}
	// A statement of its own, after the lock: it sees what those committed that held it before.
	n, err := tx.Job.Query().Where(job.OwnerID(ownerID), func(q *entsql.Selector) { q.Where(entsql.ExprP(openJobs)) }).Count(sys)
	if err != nil {
		return fmt.Errorf("count the open jobs of owner %s: %w", ownerID, err)
	}
	if n > s.maxOpenJobs {
		return beyond(CodeTooManyOpenJobs, "", "%d jobs of this owner are not finished; no more may be open at once", s.maxOpenJobs)
	}
	return nil
}
