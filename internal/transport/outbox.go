package transport

import (
	"slices"
	"sync"
)

// spareReplies is how many answers to what was no operation, or was over at once, may wait for a client. Beyond, its next
// message is not read before it takes some.
const spareReplies = 64

// outbox writes what waits for one socket: replies first, then a message of each operation in turn, so that one with much
// to say holds up none of the others. A goroutine writes while there is something to write; an idle socket has none.
type outbox struct {
	write func(text []byte) error // an error is the end of the socket
	wg    *sync.WaitGroup
	bound int // replies and queues that may wait before the reader does

	mu      sync.Mutex
	replies [][]byte
	turns   []*queue // those with something in them, once each
	writing bool
	broken  bool
	written chan struct{} // a signal after each message, and after the end
}

func newOutbox(write func([]byte) error, wg *sync.WaitGroup, maxOperations int) *outbox {
	return &outbox{write: write, wg: wg, bound: maxOperations + spareReplies, written: make(chan struct{}, 1)}
}

// reply is for what belongs to no operation.
func (b *outbox) reply(text []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return
	}
	b.replies = append(b.replies, text)
	b.start()
}

// send is for what an operation says.
func (b *outbox) send(q *queue, text []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return
	}
	q.push(text)
	if !slices.Contains(b.turns, q) { // there are few
		b.turns = append(b.turns, q)
	}
	b.start()
}

// admit waits while too much is waiting for a client that asks more and more and reads nothing. It is false once the socket
// is broken.
func (b *outbox) admit() bool {
	for {
		b.mu.Lock()
		broken, much := b.broken, len(b.replies)+len(b.turns) > b.bound
		b.mu.Unlock()
		if broken || !much {
			return !broken
		}
		<-b.written
	}
}

func (b *outbox) start() {
	if !b.writing {
		b.writing = true
		b.wg.Go(b.run)
	}
}

func (b *outbox) run() {
	for text := b.next(); text != nil; text = b.next() {
		if err := b.write(text); err != nil {
			b.fail()
			return
		}
		signal(b.written)
	}
}

// next is nil if nothing is left; the writer ends then.
func (b *outbox) next() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.replies) > 0 {
		text := b.replies[0]
		b.replies = b.replies[1:]
		return text
	}
	b.replies = nil
	for len(b.turns) > 0 {
		q := b.turns[0]
		b.turns = b.turns[1:]
		text, ok, _ := q.pop()
		if !ok {
			continue // it was dropped
		}
		if !q.empty() {
			b.turns = append(b.turns, q)
		}
		return text
	}
	b.turns = nil
	b.writing = false
	return nil
}

// fail forgets everything and takes no more.
func (b *outbox) fail() {
	b.mu.Lock()
	b.broken, b.replies, b.turns = true, nil, nil
	b.mu.Unlock()
	signal(b.written)
}
