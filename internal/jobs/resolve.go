package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/viewer"
)

// maxNote bounds an operator's note in bytes.
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
	if err := checkResolution(r); err != nil {
		return AttemptAndJob{}, err
	}
	if err := s.resolve(ctx, v, jobID, r); err != nil && !errors.Is(err, errLost) {
		return AttemptAndJob{}, err
	} else if err != nil {
		return AttemptAndJob{}, s.verdict(ctx, r.AttemptID)
	}
	sys := viewer.NewSystemContext(ctx)
	a, err := s.store.Client().Attempt.Query().Where(attempt.ID(r.AttemptID)).WithJob().Only(sys)
	if err != nil {
		return AttemptAndJob{}, fmt.Errorf("read attempt %s: %w", r.AttemptID, err)
	}
	return AttemptAndJob{Attempt: a, Job: a.Edges.Job}, nil
}

func (s *Service) resolve(ctx context.Context, v viewer.Viewer, jobID string, r Resolution) error {
	sys := viewer.NewSystemContext(ctx)
	d := detail{"note": r.Note}
	if r.Outcome == attempt.StateSUCCEEDED {
		a, err := s.store.Client().Attempt.Query().Where(attempt.ID(r.AttemptID)).WithJob().Only(sys)
		if err != nil {
			return fmt.Errorf("read attempt %s: %w", r.AttemptID, err)
		}
		task, err := s.version(sys, s.store.Client(), a.Edges.Job.TaskVersion)
		if err != nil {
			return err
		}
		if bad := task.OutputSchema.ValidateOutput(r.Result); len(bad) > 0 {
			var issues []Issue
			for _, b := range bad {
				issues = append(issues, Issue{"/result" + b.Pointer, b.Message})
			}
			return &InvalidInputError{Issues: issues}
		}
		if a.State != attempt.StateUNKNOWN {
			return unresolvable(a.State)
		}
		return s.claim(sys, v, a, Outcome{Output: r.Result}, d)
	}
	return s.change(sys, v, jobID, func(c *change) error {
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
		d["code"] = f.Code
		return c.failed(a.ID, Outcome{Failure: f}, d)
	})
}

// unresolvable says why an attempt that is not UNKNOWN cannot be resolved.
func unresolvable(s attempt.State) error {
	if !openState(s) {
		return errLost
	}
	return invalid("/attemptId", "the attempt is %s; only an UNKNOWN one can be resolved", s)
}

func checkResolution(r Resolution) error {
	switch {
	case strings.TrimSpace(r.Note) == "":
		return invalid("/note", "must not be empty")
	case len(r.Note) > maxNote:
		return invalid("/note", "must have at most %d bytes", maxNote)
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
	a, err := s.store.Client().Attempt.Query().Where(attempt.ID(attemptID)).WithJob().Only(viewer.NewSystemContext(ctx))
	if err != nil {
		return fmt.Errorf("read attempt %s: %w", attemptID, err)
	}
	return &AttemptFinishedError{Attempt: a, Job: a.Edges.Job}
}
