package jobs

import (
	"context"
	"fmt"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Backlog counts what waits for a person.
type Backlog struct {
	Unknown map[string]int // UNKNOWN attempts, by provider; providers without any are left out
	Waiting int            // jobs that are WAITING
}

// Backlog counts now, by two queries over the states' indexes.
func (s *Service) Backlog(ctx context.Context) (Backlog, error) {
	sys := viewer.NewSystemContext(ctx)
	var rows []struct {
		Target string `json:"target"`
		Count  int    `json:"count"`
	}
	err := s.store.Client().Attempt.Query().Where(attempt.StateEQ(attempt.StateUNKNOWN)).
		GroupBy(attempt.FieldTarget).Aggregate(ent.Count()).Scan(sys, &rows)
	if err != nil {
		return Backlog{}, fmt.Errorf("count UNKNOWN attempts: %w", err)
	}
	b := Backlog{Unknown: map[string]int{}}
	for _, r := range rows {
		b.Unknown[ProviderOf(r.Target)] += r.Count
	}
	if b.Waiting, err = s.store.Client().Job.Query().Where(job.StateEQ(job.StateWAITING)).Count(sys); err != nil {
		return Backlog{}, fmt.Errorf("count WAITING jobs: %w", err)
	}
	return b, nil
}
