package dispatch

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/docket-gateway/docket/providers"
)

// limits bound the requests that are in flight at once, by provider and in this process.
type limits map[string]*semaphore.Weighted

func newLimits(r *providers.Registry) limits {
	l := limits{}
	for _, t := range r.Targets() {
		if l[t.Provider] == nil {
			l[t.Provider] = semaphore.NewWeighted(int64(t.Config.MaxConcurrency))
		}
	}
	return l
}

// enter waits for a place at the provider; leave gives it back and may be called more than once. It fails with ctx's
// error. Who waits holds a worker and a lease, but has sent nothing.
func (l limits) enter(ctx context.Context, provider string) (leave func(), err error) {
	s := l[provider]
	if s == nil {
		return func() {}, nil
	}
	if err := s.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { s.Release(1) }), nil
}
