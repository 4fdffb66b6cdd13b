package jobs

import (
	"context"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Refuse settles an attempt as FAILED because its worker will not send it. It changes nothing if the attempt was sent or is
// another worker's by now: a worker that was slow to refuse must not speak for the one that sends it.
func (s *Service) Refuse(ctx context.Context, l *Lease, f *Failure) error {
	sys := viewer.NewSystemContext(ctx)
	by, _ := viewer.FromContext(sys)
	err := s.change(sys, by, l.Job.ID, func(c *change) error {
		return c.failed(l.Attempt.ID, Outcome{Failure: f}, nil, attempt.LeaseToken(l.Token), attempt.SentAtIsNil())
	})
	return s.ignoreLost(sys, l.Attempt, err)
}
