package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/viewer"
)

// maxNote bounds a note in bytes.
const maxNote = 10_000

// ResolveAttempt settles an UNKNOWN attempt by an operator's word, through the same guarded moves as its worker.
//
// Errors: ErrForbidden, ErrNotFound, *InvalidInputError, *AttemptFinishedError (somebody else was first).
func (s *Service) ResolveAttempt(ctx context.Context, r Resolution) (AttemptAndJob, error) {
	v, jobID, err := s.jobOf(ctx, r.AttemptID)
	if err != nil {
		return AttemptAndJob{}, err
	}
	if !v.Operator {
		return AttemptAndJob{}, ErrForbidden
	}
	if err := r.Check(); err != nil {
		return AttemptAndJob{}, err
	}
	err = s.resolve(ctx, v, jobID, r)
	if errors.Is(err, errLost) {
		return AttemptAndJob{}, s.verdict(ctx, r.AttemptID)
	}
	if err != nil {
		return AttemptAndJob{}, err
	}
	a, err := s.withJob(ctx, r.AttemptID)
	if err != nil {
		return AttemptAndJob{}, err
	}
	return AttemptAndJob{Attempt: a, Job: a.Edges.Job}, nil
}

func (s *Service) resolve(ctx context.Context, v viewer.Viewer, jobID string, r Resolution) error {
	if r.Outcome == attempt.StateSUCCEEDED {
		return s.resolveSucceeded(ctx, v, r)
	}
	return s.change(ctx, v, jobID, func(c *change) error {
		a, err := c.find(r.AttemptID)
		if err != nil {
			return err
		}
		if a.State != attempt.StateUNKNOWN {
			return unresolvable(a.State)
		}
		if r.Outcome == attempt.StateCANCELLED {
			return c.abandon(a, CodeCancelled, &r.Note)
		}
		f := &Failure{Code: CodeResolved, Message: "An operator settled the attempt as failed."}
		return c.failed(a.ID, Outcome{Failure: f}, detail{"code": f.Code, "note": r.Note})
	})
}

// resolveSucceeded claims the job with the operator's result, under the rules that hold for a worker's.
func (s *Service) resolveSucceeded(ctx context.Context, v viewer.Viewer, r Resolution) error {
	sys := viewer.NewSystemContext(ctx)
	a, err := s.withJob(ctx, r.AttemptID)
	if err != nil {
		return err
	}
	o := Outcome{Output: r.Result}
	if a.State != attempt.StateUNKNOWN {
		err = unresolvable(a.State)
	} else {
		task, verr := s.version(sys, s.store.Client(), a.Edges.Job.TaskVersion)
		if verr != nil {
			return verr
		}
		if bad := task.OutputSchema.ValidateOutput(r.Result); len(bad) > 0 {
			var issues []Issue
			for _, b := range bad {
				issues = append(issues, Issue{"/result" + b.Pointer, b.Message})
			}
			return &InvalidInputError{Issues: issues}
		}
		err = s.claim(sys, v, a, o, detail{"note": r.Note})
	}
	if errors.Is(err, errLost) {
		if derr := s.dropped(sys, v, a, o); derr != nil {
			return derr
		}
	}
	return err
}

// unresolvable says why an attempt that is not UNKNOWN cannot be resolved.
func unresolvable(s attempt.State) error {
	if !openState(s) {
		return errLost
	}
	return invalid("/attemptId", "the attempt is %s; only an UNKNOWN one can be resolved", s)
}

// Check returns an *InvalidInputError for what no attempt can be resolved with: a note that is blank or has more than 10,000
// bytes, an outcome that is none, a result without SUCCEEDED or the other way round.
func (r Resolution) Check() error {
	if err := checkNote(&r.Note); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(r.Note) == "":
		return invalid("/note", "must not be empty")
	case r.Outcome == attempt.StateSUCCEEDED && r.Result == nil:
		return invalid("/result", "is required for SUCCEEDED")
	case r.Outcome != attempt.StateSUCCEEDED && r.Result != nil:
		return invalid("/result", "is taken for SUCCEEDED only")
	}
	switch r.Outcome {
	case attempt.StateSUCCEEDED, attempt.StateFAILED, attempt.StateCANCELLED:
		return nil
	default:
		return invalid("/outcome", "must be SUCCEEDED, FAILED or CANCELLED")
	}
}

// verdict tells who came second what had happened.
func (s *Service) verdict(ctx context.Context, attemptID string) error {
	a, err := s.withJob(ctx, attemptID)
	if err != nil {
		return err
	}
	return &AttemptFinishedError{Attempt: a, Job: a.Edges.Job}
}

// withJob reads an attempt and its job for the system.
func (s *Service) withJob(ctx context.Context, attemptID string) (*ent.Attempt, error) {
	a, err := s.store.Client().Attempt.Query().Where(attempt.ID(attemptID)).WithJob().Only(viewer.NewSystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("read attempt %s: %w", attemptID, err)
	}
	return a, nil
}

func checkNote(note *string) error {
	if note != nil && len(*note) > maxNote {
		return invalid("/note", "must have at most %d bytes", maxNote)
	}
	return nil
}
