// Package retention decides when finished jobs, and the idempotency keys that they hold, may go. The removal itself is
// internal/jobs' alone.
//
// It imports ent and internal/jobs.
package retention

import (
	"context"
	"log/slog"
	"time"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/jobs"
)

// Policy says how long finished jobs are kept. The zero Policy keeps all of them for ever.
type Policy struct {
	Age      time.Duration // since the job's last event; 0 is off
	Interval time.Duration // between two passes, positive unless Age is 0
	Batch    int           // jobs removed in one transaction, positive unless Age is 0
}

// Purger is *jobs.Service.
type Purger interface {
	Purge(ctx context.Context, age time.Duration, batch int) (int, error)
}

// KeyExpiresAt is when the job may be removed at the earliest: until then its key cannot make a second job. It is nil while
// the job is open, since an open job is never removed, and if nothing is.
func (p Policy) KeyExpiresAt(j *ent.Job) *time.Time {
	if p.Age <= 0 || !jobs.Finished(j.State) {
		return nil
	}
	at := j.UpdatedAt.Add(p.Age)
	return &at
}

// Run removes outdated jobs until ctx is done, first after one interval. It runs in every process, as no pass needs to know
// of the others: what one holds, the other leaves alone.
func (p Policy) Run(ctx context.Context, from Purger, log *slog.Logger) {
	if p.Age <= 0 {
		return
	}
	t := time.NewTicker(p.Interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			p.pass(ctx, from, log)
		}
	}
}

// pass goes on for as long as batches are full: a backlog must not wait for as many intervals as it has batches.
func (p Policy) pass(ctx context.Context, from Purger, log *slog.Logger) {
	total := 0
	for ctx.Err() == nil {
		n, err := from.Purge(ctx, p.Age, p.Batch)
		total += n
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "retention", "error", err)
		}
		if err != nil || n < p.Batch {
			break
		}
	}
	if total > 0 {
		log.InfoContext(ctx, "removed finished jobs", "jobs", total, "older_than", p.Age)
	}
}
