package jobs

import (
	"context"
	"fmt"
	"strings"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/viewer"
)

// SettleReported records an outcome that a provider reported by itself, outside of the attempt's own request. It is Settle,
// for attempts that were sent to that provider.
//
// Errors: ErrNotFound if there is no such attempt at that provider, or none that was sent yet: nobody can know its outcome.
func (s *Service) SettleReported(ctx context.Context, provider, attemptID string, o Outcome) (Verdict, error) {
	a, err := s.store.Client().Attempt.Query().Where(attempt.ID(attemptID)).Only(viewer.NewSystemContext(ctx))
	if ent.IsNotFound(err) {
		return Verdict{}, ErrNotFound
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("read attempt %s: %w", attemptID, err)
	}
	if ProviderOf(a.Target) != provider || a.SentAt == nil {
		return Verdict{}, ErrNotFound
	}
	o.Via = ViaCallback
	return s.Settle(ctx, attemptID, o)
}

// ProviderOf is the first part of a target; a model's name may hold slashes, a provider's does not.
func ProviderOf(target string) string {
	provider, _, _ := strings.Cut(target, "/")
	return provider
}
