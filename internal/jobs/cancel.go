package jobs

import (
	"context"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

// CancelAttempt abandons one attempt, explicitly. What it brings later is dropped. With nothing else in flight the job is
// WAITING: a cancellation by hand does not go on by itself.
//
// Errors: ErrNotFound, *InvalidInputError (the note is too long), *AttemptFinishedError (the verdict: who had already won).
func (s *Service) CancelAttempt(ctx context.Context, attemptID string, note *string) (AttemptAndJob, error) {
	v, jobID, err := s.jobOf(ctx, attemptID)
	if err == nil {
		err = checkNote(note)
	}
	if err != nil {
		return AttemptAndJob{}, err
	}
	var out AttemptAndJob
	err = s.change(ctx, v, jobID, func(c *change) error {
		a, err := c.find(attemptID)
		if err != nil {
			return err
		}
		if !open(a) {
			return &AttemptFinishedError{Attempt: a, Job: c.job}
		}
		if err := c.abandon(a, CodeCancelled, note); err != nil {
			return err
		}
		if out.Attempt, err = c.fresh(a.ID); err != nil {
			return err
		}
		out.Job = c.job
		return nil
	})
	if err != nil {
		return AttemptAndJob{}, err
	}
	return out, nil
}

// abandon cancels an open attempt and leaves the job to its owner, unless another attempt is under way.
func (c *change) abandon(a *ent.Attempt, code string, note *string) error {
	d := detail{"code": code}
	if note != nil {
		d["note"] = *note
	}
	if err := c.move(a, attempt.StateCANCELLED, d, setFailure(&Failure{Code: code, Message: "Cancelled by hand."})); err != nil {
		return err
	}
	if s, ok := whileOpen(c.attempts); ok {
		c.becomes(s, false, nil)
		return nil
	}
	c.becomes(job.StateWAITING, false, nil)
	return nil
}

// CancelJob ends a job for good; its open attempts are cancelled in the same transaction.
//
// Errors: ErrNotFound, *InvalidInputError (the note is too long), *JobFinishedError.
func (s *Service) CancelJob(ctx context.Context, jobID string, note *string) (*ent.Job, error) {
	v, err := s.mayTouch(ctx, jobID)
	if err == nil {
		err = checkNote(note)
	}
	if err != nil {
		return nil, err
	}
	var out *ent.Job
	err = s.change(ctx, v, jobID, func(c *change) error {
		if final(c.job) || c.job.State == job.StateFAILED {
			return &JobFinishedError{Job: c.job}
		}
		for _, a := range c.attempts {
			if !open(a) {
				continue
			}
			f := &Failure{Code: CodeCancelled, Message: "Cancelled with its job."}
			if err := c.move(a, attempt.StateCANCELLED, detail{"code": CodeCancelled}, setFailure(f)); err != nil {
				return err
			}
		}
		var d detail
		if note != nil {
			d = detail{"note": *note}
		}
		c.becomes(job.StateCANCELLED, true, d)
		out = c.job
		return nil
	})
	return out, err
}
