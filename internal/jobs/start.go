package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

// StartAttempt adds an attempt by hand: the "fallback" or "retry" button. It takes the place of a retry that waits for its
// back-off. Without a target it is the next untried fallback that the gate allows, else the job's own target.
//
// Errors: ErrNotFound, *JobFinishedError, *AttemptBlockedError, *FallbackNotAllowedError, *TooManyAttemptsError.
func (s *Service) StartAttempt(ctx context.Context, jobID string, target *string) (AttemptAndJob, error) {
	v, err := s.mayTouch(ctx, jobID)
	if err != nil {
		return AttemptAndJob{}, err
	}
	var out AttemptAndJob
	err = s.change(ctx, v, jobID, func(c *change) error {
		if final(c.job) {
			return &JobFinishedError{Job: c.job}
		}
		task, err := s.version(c.ctx, c.tx.Client, c.job.TaskVersion)
		if err != nil {
			return err
		}
		waiting, err := c.blockers(task)
		if err != nil {
			return err
		}
		chosen, err := c.choose(task, target)
		if err != nil {
			return err
		}
		if len(c.attempts) >= s.maxAttempts {
			return &TooManyAttemptsError{Target: chosen, Max: s.maxAttempts}
		}
		if waiting != nil {
			if err := c.replace(waiting); err != nil {
				return err
			}
		}
		if c.job.State == job.StateFAILED { // re-opened: late claims of its former life are void
			c.reset = true
		}
		a, err := c.add(chosen, attempt.ReasonMANUAL, s.now(), nil)
		if err != nil {
			return err
		}
		state, _ := whileOpen(c.attempts)
		c.becomes(state, false, nil)
		out = AttemptAndJob{Attempt: a, Job: c.job}
		return nil
	})
	if err != nil {
		return AttemptAndJob{}, err
	}
	return out, nil
}

// blockers returns the retry that waits for its back-off, if there is one, or an *AttemptBlockedError.
func (c *change) blockers(task *tasks.Definition) (waiting *ent.Attempt, err error) {
	for _, a := range c.attempts {
		if c.waitsForBackoff(a) {
			waiting = a
			continue
		}
		if blocks(a, task.RaceAllowed) {
			return nil, &AttemptBlockedError{By: a}
		}
	}
	return waiting, nil
}

// replace cancels a retry that waits. A worker does not lock the job to take or send an attempt, so the update itself looks
// again whether one has: then the retry blocks like any other attempt.
func (c *change) replace(waiting *ent.Attempt) error {
	err := c.move(waiting, attempt.StateCANCELLED, detail{"code": CodeReplaced}, setFailure(&Failure{
		Code: CodeReplaced, Message: "An attempt started by hand took the place of this retry.",
	}), attempt.SentAtIsNil(), attempt.LeaseTokenIsNil())
	if !errors.Is(err, errLost) {
		return err
	}
	now, err := c.fresh(waiting.ID)
	if err != nil {
		return err
	}
	return &AttemptBlockedError{By: now}
}

// waitsForBackoff says that no worker had touched the retry when it was read.
func (c *change) waitsForBackoff(a *ent.Attempt) bool {
	return a.State == attempt.StateSTARTING && a.Reason == attempt.ReasonRETRY && a.SentAt == nil && a.LeaseToken == nil &&
		a.DueAt.After(time.Now())
}

// choose picks the target of an attempt started by hand.
func (c *change) choose(task *tasks.Definition, target *string) (string, error) {
	if target == nil {
		next, ok, err := c.nextFallback(task, c.triedAtAll)
		if err != nil || ok {
			return next, err
		}
		return c.job.Target, nil
	}
	if *target == c.job.Target {
		return *target, nil
	}
	d, err := c.s.allowed(c.ctx, c.tx.Client, task, *target)
	if err != nil {
		return "", err
	}
	if !d.Allowed {
		return "", &FallbackNotAllowedError{Target: *target, Reasons: d.Reasons}
	}
	return *target, nil
}

// mayTouch returns the viewer if it may see the job: its owner and operators.
func (s *Service) mayTouch(ctx context.Context, jobID string) (viewer.Viewer, error) {
	v, ok := viewer.FromContext(ctx)
	if !ok {
		return v, ErrUnauthenticated
	}
	found, err := s.store.Client().Job.Query().Where(job.ID(jobID)).Exist(ctx) // narrowed by the privacy policy
	if err != nil {
		return v, err
	}
	if !found {
		return v, ErrNotFound
	}
	return v, nil
}

// jobOf returns the job of an attempt that the viewer may see.
func (s *Service) jobOf(ctx context.Context, attemptID string) (viewer.Viewer, string, error) {
	v, ok := viewer.FromContext(ctx)
	if !ok {
		return v, "", ErrUnauthenticated
	}
	a, err := s.store.Client().Attempt.Query().Where(attempt.ID(attemptID)).Only(ctx)
	if ent.IsNotFound(err) {
		return v, "", ErrNotFound
	}
	if err != nil {
		return v, "", err
	}
	return v, a.JobID, nil
}
