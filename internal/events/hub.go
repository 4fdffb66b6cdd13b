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
	look chan struct{} // a signal that the poll should look now

	mu       sync.Mutex
	watchers map[string]map[*Watch]struct{}
	forward  func(jobID string)
}

// NewHub returns a hub without watchers.
func NewHub() *Hub {
	return &Hub{watchers: map[string]map[*Watch]struct{}{}, look: make(chan struct{}, 1)}
}

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

// Watch is somebody's interest in one job.
type Watch struct {
	// Changed holds one signal when the job changed since it was last received from. It is never closed.
	Changed <-chan struct{}

	hub   *Hub
	jobID string
	wake  chan struct{}
	saw   int // under the hub's lock; less than 0: nothing yet
}

// Watch begins a watch, which ends by Stop. Read the job only after it began, or a change in between is missed.
func (h *Hub) Watch(jobID string) *Watch {
	wake := make(chan struct{}, 1)
	w := &Watch{Changed: wake, hub: h, jobID: jobID, wake: wake, saw: -1}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers[jobID] == nil {
		h.watchers[jobID] = map[*Watch]struct{}{}
	}
	h.watchers[jobID][w] = struct{}{}
	return w
}

// Saw tells the number of the job's last event as the watcher read it, so that the poll wakes it only for later ones. A
// watcher that has never said it is left alone by the poll.
func (w *Watch) Saw(number int) {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.saw = number
}

// Stop ends the watch. It may be called more than once.
func (w *Watch) Stop() {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers[w.jobID], w)
	if len(h.watchers[w.jobID]) == 0 {
		delete(h.watchers, w.jobID)
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
		signal(w.wake)
	}
}

// lookNow is for when notices may have been lost.
func (h *Hub) lookNow() { signal(h.look) }

func (h *Hub) setForward(f func(jobID string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forward = f
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
