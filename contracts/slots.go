package contracts

import (
	"context"
	"sync"

	"github.com/docket-gateway/docket/providers"
)

// Slots bound how many requests are under way at once, over all runs that share them: in all, and at each provider by its
// max_concurrency. They are safe for concurrent use.
type Slots struct {
	all chan struct{}

	mu        sync.Mutex
	providers map[string]chan struct{}
}

// NewSlots returns n slots, DefaultConcurrency if n is 0.
func NewSlots(n int) *Slots {
	if n == 0 {
		n = DefaultConcurrency
	}
	return &Slots{all: make(chan struct{}, n), providers: map[string]chan struct{}{}}
}

// take waits for a slot. ok is false if ctx ended first; there is nothing to release then.
func (s *Slots) take(ctx context.Context, t providers.Target) (release func(), ok bool) {
	// The provider's first: who waits for a slow provider must not keep others from theirs.
	own := s.provider(t)
	if own != nil {
		select {
		case own <- struct{}{}:
		case <-ctx.Done():
			return nil, false
		}
	}
	leave := func() {
		if own != nil {
			<-own
		}
	}
	select {
	case s.all <- struct{}{}:
		return func() { <-s.all; leave() }, true
	case <-ctx.Done():
		leave()
		return nil, false
	}
}

func (s *Slots) provider(t providers.Target) chan struct{} {
	if t.Config.MaxConcurrency < 1 {
		return nil // not told
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own, ok := s.providers[t.Provider]
	if !ok {
		own = make(chan struct{}, t.Config.MaxConcurrency)
		s.providers[t.Provider] = own
	}
	return own
}
