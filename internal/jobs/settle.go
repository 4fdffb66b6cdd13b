package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Verdict says what became of an attempt that somebody tried to settle.
type Verdict struct {
	Landed  bool // false: it was settled before, and nothing but its usage was kept
	Attempt *ent.Attempt
	Job     *ent.Job
}

// Settle records an attempt's outcome. Workers, sweepers and operators go the same way: whoever is second changes nothing
// and is told what had happened.
//
// A complete answer is validated here and nowhere else, so that none can become a result that breaks the task's output
// schema or carries an undeclared key.
func (s *Service) Settle(ctx context.Context, attemptID string, o Outcome) (Verdict, error) {
	sys := viewer.NewSystemContext(ctx)
	by, _ := viewer.FromContext(sys)
	a, err := s.withJob(sys, attemptID)
	if ent.IsNotFound(err) { // purged with its job, which was finished long ago
		return Verdict{}, fmt.Errorf("settle attempt %s: %w", attemptID, ErrNotFound)
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("settle attempt %s: %w", attemptID, err)
	}
	o = o.clean()
	if o.Failure == nil {
		task, err := s.version(sys, s.store.Client(), a.Edges.Job.TaskVersion)
		if err != nil {
			return Verdict{}, err
		}
		if f := checkOutput(task, o.Output); f != nil {
			o.Output, o.Failure = nil, f.clean()
		}
	}
	switch {
	case o.Failure == nil:
		err = s.claim(sys, by, a, o, nil)
	case o.Unknown:
		err = s.change(sys, by, a.JobID, func(c *change) error { c.via = o.Via; return c.unknown(attemptID, o, s.askAfter(o.Listens)) })
	default:
		err = s.change(sys, by, a.JobID, func(c *change) error { c.via = o.Via; return c.failed(attemptID, o, nil) })
	}
	if err != nil && !errors.Is(err, errLost) {
		return Verdict{}, fmt.Errorf("settle attempt %s: %w", attemptID, err)
	}
	lost := err != nil
	if lost {
		if err := s.dropped(sys, by, a, o); err != nil {
			return Verdict{}, err
		}
	}
	v := Verdict{Landed: !lost}
	if v.Attempt, err = s.withJob(sys, attemptID); err != nil {
		return Verdict{}, err
	}
	v.Job = v.Attempt.Edges.Job
	return v, nil
}

// claim writes a result by compare-and-swap: the job's version is the one that the attempt was created under, never a
// newer one, and its result slot is empty. It returns errLost, and writes nothing, if either row is not there any more.
func (s *Service) claim(sys context.Context, by viewer.Viewer, a *ent.Attempt, o Outcome, d detail) error {
	return s.store.Tx(sys, func(tx *store.Tx) error {
		n, err := tx.Job.Update().
			Where(job.ID(a.JobID), job.Version(a.JobVersion), job.CompletedByIDIsNil()).
			SetState(job.StateSUCCEEDED).SetResult(o.Output).SetCompletedByID(a.ID).AddVersion(1).Save(sys)
		if err != nil {
			return fmt.Errorf("claim job %s: %w", a.JobID, err)
		}
		if n != 1 {
			return errLost
		}
		j, err := tx.Job.Get(sys, a.JobID) // the update above holds its lock
		if err != nil {
			return fmt.Errorf("read job %s: %w", a.JobID, err)
		}
		return s.changeLocked(sys, tx, j, by, func(c *change) error { c.via = o.Via; return c.won(a.ID, o, d) })
	})
}

// won moves the winner, by the same guarded update as every move, and supersedes whatever else is open.
func (c *change) won(attemptID string, o Outcome, d detail) error {
	winner, err := c.find(attemptID)
	if err != nil {
		return err
	}
	// The claim has already written the job's new state; what it was before follows from the attempts.
	if before, ok := whileOpen(c.attempts); ok {
		c.state = before
	}
	err = c.move(winner, attempt.StateSUCCEEDED, d, all(c.setUsage(winner, o.Usage), setRequestID(o), func(u *ent.AttemptUpdate) {
		u.ClearErrorCode().ClearErrorMessage().ClearErrorRetryable().ClearErrorRetryAfterMs()
	}))
	if err != nil {
		return err
	}
	for _, a := range c.attempts {
		if !open(a) {
			continue
		}
		f := &Failure{Code: CodeSuperseded, Message: "Another attempt of the job won."}
		if err := c.move(a, attempt.StateSUPERSEDED, detail{"code": CodeSuperseded, "winner": attemptID}, setFailure(f)); err != nil {
			return err
		}
	}
	c.becomes(job.StateSUCCEEDED, false, nil)
	return nil
}

// dropped keeps only the usage of an answer that came too late. An attempt that is still open although its claim failed
// is SUPERSEDED; one that is terminal stays as it is.
func (s *Service) dropped(sys context.Context, by viewer.Viewer, a *ent.Attempt, o Outcome) error {
	if !o.Unknown { // that brings no answer, but may tell of usage
		s.metrics.RaceLost()
		s.log.LogAttrs(sys, slog.LevelInfo, "outcome dropped: the attempt or its job was settled before",
			slog.String("job", a.JobID), slog.String("attempt", a.ID))
	}
	return s.change(sys, by, a.JobID, func(c *change) error {
		now, err := c.find(a.ID)
		if err != nil {
			return err
		}
		if o.Failure == nil && open(now) {
			f := &Failure{Code: CodeSuperseded, Message: "The job's result slot had moved."}
			if err := c.move(now, attempt.StateSUPERSEDED, detail{"code": CodeSuperseded}, setFailure(f)); err != nil {
				return err
			}
			if st, ok := whileOpen(c.attempts); ok {
				c.becomes(st, false, nil)
			} else if !final(c.job) && c.job.State != job.StateFAILED {
				c.becomes(job.StateWAITING, false, nil)
			}
		}
		return c.keepUsage(now, o.Usage)
	})
}

// unknown records that nobody can tell. It blocks new attempts and leaves the job's version alone, so that a late answer
// can still win. askAt sets when the provider may be asked at the earliest; nil if it is not known whether a worker still
// listens.
func (c *change) unknown(attemptID string, o Outcome, askAt func(*ent.AttemptUpdate), guards ...predicate.Attempt) error {
	a, err := c.find(attemptID)
	if err != nil {
		return err
	}
	set := all(setFailure(o.Failure), c.setUsage(a, o.Usage), setRequestID(o))
	if askAt != nil {
		set = all(set, askAt)
	}
	if err := c.move(a, attempt.StateUNKNOWN, failureDetail(o.Failure), set, guards...); err != nil {
		return err
	}
	s, _ := whileOpen(c.attempts)
	c.becomes(s, false, nil)
	return nil
}

// failed records a definite no and decides what follows, in the same transaction.
func (c *change) failed(attemptID string, o Outcome, d detail, guards ...predicate.Attempt) error {
	a, err := c.find(attemptID)
	if err != nil {
		return err
	}
	if d == nil {
		d = failureDetail(o.Failure)
	}
	if err := c.move(a, attempt.StateFAILED, d, all(setFailure(o.Failure), c.setUsage(a, o.Usage), setRequestID(o)), guards...); err != nil {
		return err
	}
	o.Failure.keep(a)
	return c.settled(a, o.Failure)
}
