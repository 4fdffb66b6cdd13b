package transport

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errSlow is for a queue that was full for too long.
var errSlow = errors.New("the client does not take what it asked for")

// queue holds what an operation has said and its client has not taken. Its bound is kept by who fills it: ask for room, then
// make the next message, then push it. So it holds at most one message more than its bound, and an error.
type queue struct {
	messages, bytes int // the bound

	mu    sync.Mutex
	items [][]byte
	size  int
	ended bool // nothing is pushed any more

	// torn is for who reads to the end: that was not the operation's own. It is written before the end alone.
	torn bool

	taken  chan struct{} // a signal that an item was taken
	filled chan struct{} // a signal that there is an item, or the end
}

func newQueue(o Options) *queue {
	return &queue{messages: o.Backlog, bytes: o.BacklogBytes, taken: make(chan struct{}, 1), filled: make(chan struct{}, 1)}
}

// room waits until the queue is below its bound: not longer than patience without any item being taken, then it is errSlow.
func (q *queue) room(ctx context.Context, patience time.Duration) error {
	for q.full() {
		// A timer for each wait: a queue is seldom full.
		if err := q.waitForTaker(ctx, patience); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (q *queue) waitForTaker(ctx context.Context, patience time.Duration) error {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-q.taken:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return errSlow
	}
}

func (q *queue) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) >= q.messages || q.size >= q.bytes
}

func (q *queue) push(text []byte) {
	q.mu.Lock()
	if !q.ended {
		q.items = append(q.items, text)
		q.size += len(text)
	}
	q.mu.Unlock()
	signal(q.filled)
}

// pop takes the oldest item; ok is false if there is none now. ended is true if none will come either.
func (q *queue) pop() (text []byte, ok, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return nil, false, q.ended
	}
	text, q.items[0] = q.items[0], nil
	q.items = q.items[1:]
	q.size -= len(text)
	if len(q.items) == 0 {
		q.items = nil
	}
	signal(q.taken)
	return text, true, false
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) == 0
}

// end lets no more in.
func (q *queue) end() {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	signal(q.filled)
}

// drop ends the queue and forgets what is in it.
func (q *queue) drop() {
	q.mu.Lock()
	q.items, q.size, q.ended = nil, 0, true
	q.mu.Unlock()
	signal(q.filled)
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
