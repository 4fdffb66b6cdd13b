package jobs

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/jobevent"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Hedge starts a racing attempt at the next untried fallback that the gate allows, because the given one is RUNNING but
// silent. It does nothing if the task forbids racing, the attempt is not RUNNING or another one is open.
func (s *Service) Hedge(ctx context.Context, attemptID string) error {
	sys := viewer.NewSystemContext(ctx)
	by, _ := viewer.FromContext(sys)
	a, err := s.store.Client().Attempt.Get(sys, attemptID)
	if err != nil {
		return wrap(err, "hedge attempt "+attemptID)
	}
	return s.change(sys, by, a.JobID, func(c *change) error {
		task, err := s.version(c.ctx, c.tx.Client, c.job.TaskVersion)
		if err != nil || !task.RaceAllowed {
			return err
		}
		for _, b := range c.attempts {
			if open(b) && (b.ID != attemptID || b.State != attempt.StateRUNNING) {
				return nil
			}
		}
		if now, err := c.find(attemptID); err != nil || !open(now) {
			return err
		}
		ok, err := c.addHedge(task, detail{"hedgeOf": attemptID})
		if err == nil && !ok {
			return c.logOnce(EventFallbackSkipped)
		}
		return err
	})
}

// addHedge adds an attempt at the first untried fallback that the gate allows, and says whether there was one.
func (c *change) addHedge(task *tasks.Definition, d detail) (bool, error) {
	target, ok, err := c.nextFallback(task, c.triedAtAll)
	if err == nil && ok {
		_, err = c.add(target, attempt.ReasonHEDGE, c.s.now(), d)
	}
	return ok, err
}

// hedgeOn goes on to the next fallback after a hedge that was refused before it was sent: what it raced is as silent as
// before.
func (c *change) hedgeOn(refused *ent.Attempt) error {
	task, err := c.s.version(c.ctx, c.tx.Client, c.job.TaskVersion)
	if err != nil || !task.RaceAllowed {
		return err
	}
	var raced *ent.Attempt
	for _, b := range c.attempts {
		if !open(b) {
			continue
		}
		if b.State != attempt.StateRUNNING {
			return nil
		}
		raced = b
	}
	_, err = c.addHedge(task, detail{"hedgeOf": raced.ID, "after": refused.ID})
	return err
}

// logOnce keeps a silent attempt from filling the job's log: what the log says already is not said again.
func (c *change) logOnce(kind string) error {
	said, err := c.tx.JobEvent.Query().Where(jobevent.JobID(c.job.ID), jobevent.Type(kind)).All(c.ctx)
	if err != nil {
		return fmt.Errorf("read the events of job %s: %w", c.job.ID, err)
	}
	again := 0
	for _, e := range c.pending {
		d, _ := e.Mutation().Detail()
		if slices.ContainsFunc(said, func(s *ent.JobEvent) bool { return bytes.Equal(s.Detail, d) }) {
			again++
		}
	}
	if again == len(c.pending) {
		c.pending = nil
	}
	return nil
}
