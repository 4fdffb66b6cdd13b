package graph

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/owner"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/viewer"
)

// maxOwners bounds the memory of a cache whose entries never change.
const maxOwners = 10_000

// owners tells the subjects of owners' ids.
type owners struct {
	client *ent.Client
	mu     sync.Mutex
	byID   map[string]string
}

func newOwners(c *ent.Client) *owners { return &owners{client: c, byID: map[string]string{}} }

func (o *owners) subject(ctx context.Context, j *ent.Job) (string, error) {
	v, ok := viewer.FromContext(ctx)
	if !ok {
		return "", jobs.ErrUnauthenticated
	}
	// What a person can see is their own.
	if !v.SeesAll() {
		return v.Subject, nil
	}
	if subject, ok := o.get(j.OwnerID); ok {
		return subject, nil
	}
	if err := o.prime(ctx, j); err != nil {
		return "", err
	}
	subject, ok := o.get(j.OwnerID)
	if !ok {
		return "", fmt.Errorf("job %s has no owner", j.ID)
	}
	return subject, nil
}

func (o *owners) get(id string) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	subject, ok := o.byID[id]
	return subject, ok
}

// prime reads the owners of a page of jobs at once, for those who see more than their own. Jobs that were read without
// their owner's id are passed over.
func (o *owners) prime(ctx context.Context, page ...*ent.Job) error {
	if v, ok := viewer.FromContext(ctx); !ok || !v.SeesAll() {
		return nil
	}
	missing := map[string]bool{}
	for _, j := range page {
		if j == nil || j.OwnerID == "" {
			continue
		}
		if _, ok := o.get(j.OwnerID); !ok {
			missing[j.OwnerID] = true
		}
	}
	if len(missing) == 0 {
		return nil
	}
	rows, err := o.client.Owner.Query().Where(owner.IDIn(slices.Collect(maps.Keys(missing))...)).All(ctx)
	if err != nil {
		return fmt.Errorf("read the owners of jobs: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.byID)+len(rows) > maxOwners {
		clear(o.byID)
	}
	for _, row := range rows {
		o.byID[row.ID] = row.Subject
	}
	return nil
}
