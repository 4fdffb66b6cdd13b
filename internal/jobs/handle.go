package jobs

import (
	"context"
	"fmt"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/viewer"
)

// abandonedStates are those of attempts whose answer is of no use any more, whatever runs at the provider.
var abandonedStates = []attempt.State{attempt.StateCANCELLED, attempt.StateSUPERSEDED}

// KeepHandle records the handle of an attempt that could not become RUNNING by it, because it came late or could not be
// written when it came. An UNKNOWN attempt is asked about by it from then on; what runs by it for an attempt that was
// cancelled or superseded meanwhile is cancelled at the provider. The first handle stays, and one that SUCCEEDED or FAILED
// needs none. No state moves, so there is no event. An empty handle is nothing to keep.
func (s *Service) KeepHandle(ctx context.Context, attemptID, providerRequestID, handle string) error {
	if handle == "" {
		return nil
	}
	sys := viewer.NewSystemContext(ctx)
	by, _ := viewer.FromContext(sys)
	a, err := s.withJob(sys, attemptID)
	if ent.IsNotFound(err) { // purged with its job
		return fmt.Errorf("keep the handle of attempt %s: %w", attemptID, ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("keep the handle of attempt %s: %w", attemptID, err)
	}
	// Under the job's lock, so that whoever gives the attempt up either sees the handle or is seen here.
	err = s.change(sys, by, a.JobID, func(c *change) error {
		now, err := c.find(attemptID)
		if err != nil {
			return err
		}
		u := c.tx.Attempt.Update().
			Where(attempt.ID(attemptID), attempt.ProviderHandleIsNil(), attempt.StateNotIn(attempt.StateSUCCEEDED, attempt.StateFAILED)).
			SetProviderHandle(clean(handle, maxForeign))
		if providerRequestID != "" {
			u.SetProviderRequestID(clean(providerRequestID, maxForeign))
		}
		n, err := u.Save(c.ctx)
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		if n == 1 && !open(now) {
			return c.cancelAtProvider(attemptID)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep the handle of attempt %s: %w", attemptID, err)
	}
	return nil
}

// cancelAtProvider is called once for an attempt: when it has a handle and is given up, whichever comes second.
func (c *change) cancelAtProvider(attemptID string) error {
	if err := c.s.queue.EnqueueCancel(c.ctx, c.tx, attemptID); err != nil {
		return fmt.Errorf("enqueue the cancellation of attempt %s at its provider: %w", attemptID, err)
	}
	return nil
}

// Abandoned returns an attempt, with its job, that was cancelled or superseded and has a handle by which its provider can be told
// so. It returns ErrNotYours for any other, also for one that was removed.
func (s *Service) Abandoned(ctx context.Context, attemptID string) (*ent.Attempt, error) {
	a, err := s.store.Client().Attempt.Query().
		Where(attempt.ID(attemptID), attempt.StateIn(abandonedStates...), attempt.ProviderHandleNotNil()).
		WithJob().Only(viewer.NewSystemContext(ctx))
	if ent.IsNotFound(err) {
		return nil, fmt.Errorf("cancel attempt %s at its provider: %w", attemptID, ErrNotYours)
	}
	if err != nil {
		return nil, fmt.Errorf("read attempt %s: %w", attemptID, err)
	}
	return a, nil
}
