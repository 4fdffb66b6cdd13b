// Package events tells watchers of a job that it changed, and lets them read what changed in order, without a gap.
//
// A notice is only a hint to look again: what is delivered is always read from the database, under the reader's own
// viewer, so that a lost notice costs time and never an event.
//
// It imports ent and nothing else of this module.
package events

import "sync"

// Hub wakes this process's watchers. Its zero value is not usable. It is safe for concurrent use.
type Hub struct {
	mu       sync.Mutex
	watchers map[string]map[*watcher]struct{}
	forward  func(jobID string)
}

type watcher struct{ wake chan struct{} }

// NewHub returns a hub without watchers.
func NewHub() *Hub { return &Hub{watchers: map[string]map[*watcher]struct{}{}} }

// JobChanged is to be called after the commit. It never blocks; several calls before a watcher looks are one wake-up.
func (h *Hub) JobChanged(jobID string) {
	h.wake(jobID)
	h.mu.Lock()
	forward := h.forward
	h.mu.Unlock()
	if forward != nil {
		forward(jobID)
	}
}

// Subscribe returns a channel that holds one signal when the job changed since it was last received from. cancel may be
// called more than once; the channel is never closed.
func (h *Hub) Subscribe(jobID string) (wake <-chan struct{}, cancel func()) {
	w := &watcher{wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers[jobID] == nil {
		h.watchers[jobID] = map[*watcher]struct{}{}
	}
	h.watchers[jobID][w] = struct{}{}
	return w.wake, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers[jobID], w)
		if len(h.watchers[jobID]) == 0 {
			delete(h.watchers, jobID)
		}
	}
}

// Watched returns the number of jobs that somebody watches.
func (h *Hub) Watched() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watchers)
}

func (h *Hub) wake(jobID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[jobID] {
		w.signal()
	}
}

// wakeAll is for when notices may have been lost.
func (h *Hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, watchers := range h.watchers {
		for w := range watchers {
			w.signal()
		}
	}
}

func (h *Hub) setForward(f func(jobID string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forward = f
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
