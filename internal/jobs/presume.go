package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/internal/viewer"
)

// SweepPresumedDead gives up UNKNOWN attempts at a provider that were sent, for the last time, longer than after ago by
// the database's clock: they are CANCELLED and their jobs go on along the route. It returns how many. After zero or less
// is off.
func (s *Service) SweepPresumedDead(ctx context.Context, provider string, after time.Duration) (int, error) {
	if after <= 0 {
		return 0, nil
	}
	sys := viewer.NewSystemContext(ctx)
	old := s.silentFor(after)
	found, err := s.store.Client().Attempt.Query().
		Where(attempt.StateEQ(attempt.StateUNKNOWN), atProvider(provider), old).
		Order(ent.Asc(attempt.FieldSentAt)).Limit(s.sweepBatch).All(sys)
	if err != nil {
		return 0, fmt.Errorf("find attempts that are presumed dead: %w", err)
	}
	dead := 0
	var errs []error
	for _, a := range found {
		err := s.presumeDead(sys, a, old)
		if err == nil {
			dead++
		}
		errs = append(errs, s.ignoreLost(sys, a, err))
	}
	return dead, errors.Join(errs...)
}

// presumeDead looks again under the job's lock: the attempt may be settled, or sent again, since it was found.
func (s *Service) presumeDead(sys context.Context, a *ent.Attempt, old predicate.Attempt) error {
	by, _ := viewer.FromContext(sys)
	return s.change(sys, by, a.JobID, func(c *change) error {
		c.via = ViaPresumedDead
		now, err := c.find(a.ID)
		if err != nil {
			return err
		}
		f := &Failure{Code: CodePresumedDead, Message: "Nothing was heard for longer than this provider can go on working."}
		if err := c.move(now, attempt.StateCANCELLED, failureDetail(f), setFailure(f), attempt.StateEQ(attempt.StateUNKNOWN), old); err != nil {
			return err
		}
		return c.settled(now, f)
	})
}

// silentFor finds attempts whose request was sent for the last time longer than d ago.
func (s *Service) silentFor(d time.Duration) predicate.Attempt {
	return func(sel *entsql.Selector) {
		sel.Where(entsql.ExprP("COALESCE(" + sel.C(attempt.FieldResentAt) + ", " + sel.C(attempt.FieldSentAt) + ") < " + s.store.Now(-d)))
	}
}

// atProvider finds attempts at any model of a provider, also one that is not configured any more.
func atProvider(name string) predicate.Attempt { return attempt.TargetHasPrefix(name + "/") }
