package graph

import (
	"context"
	"fmt"
	"sync"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/viewer"
)

// maxOwners bounds the memory of a cache whose entries never change.
const maxOwners = 10_000

// owners tells the subject of an owner's id.
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
	// Entities that were loaded for their other columns do not say whose they are; what a person can see is their own.
	if !v.SeesAll() || j.OwnerID == v.OwnerID() {
		return v.Subject, nil
	}
	if j.Edges.Owner != nil {
		return j.Edges.Owner.Subject, nil
	}
	o.mu.Lock()
	subject, ok := o.byID[j.OwnerID]
	o.mu.Unlock()
	if ok {
		return subject, nil
	}
	row, err := o.client.Owner.Get(ctx, j.OwnerID)
	if err != nil {
		return "", fmt.Errorf("read the owner of job %s: %w", j.ID, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.byID) >= maxOwners {
		clear(o.byID)
	}
	o.byID[j.OwnerID] = row.Subject
	return row.Subject, nil
}
