package transport

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// operation is one that is not over, for the client or for gqlgen.
type operation struct {
	ours, client string
	over         bool // for the client: it hears no more of it
	q            *queue
}

// admits returns the code to close with if no operation may begin under the client's id, 0 if one may. Only the reader of messages
// asks, and only it adds operations.
func (s *socket) admits(id string) (code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, taken := s.byClient[id]
	switch {
	case !s.initialised:
		return closeUnauthorized, "Unauthorized"
	case id == "":
		return closeBadMessage, "Invalid message"
	case taken:
		return closeDuplicateID, "Subscriber for this id already exists"
	}
	return 0, ""
}

// open gives an operation its own id. code is that to close with, 0 if the message is right; refused is why it may not run
// all the same.
func (s *socket) open(m *message) (code int, reason string, refused *gqlerror.Error) {
	if code, reason := s.admits(m.ID); code != 0 {
		return code, reason, nil
	}
	params, p := decode(orNull(m.Payload))
	if p != nil {
		return closeBadMessage, "Invalid message", nil
	}
	if wait := s.o.take(s.bound()); wait > 0 {
		return 0, "", rateLimited(wait)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byOurs) >= s.o.MaxOperations {
		return 0, "", codedError(CodeTooManyOperations, "too many operations on this socket")
	}
	// Written anew from what was checked: gqlgen's decoder would take QUERY for query.
	payload, err := json.Marshal(params)
	if err != nil {
		return closeBadMessage, "Invalid message", nil
	}
	s.last++
	ours := strconv.Itoa(s.last)
	s.opening = &operation{ours: ours, client: m.ID, q: newQueue(s.o)}
	s.byClient[m.ID], s.byOurs[ours] = s.opening, s.opening
	m.ID, m.Payload = ours, payload
	return 0, "", nil
}

// enter counts the socket for its client, and its age from now on.
func (s *socket) enter(client context.Context) bool {
	leave, ok := s.o.enter(client)
	if !ok {
		return false
	}
	s.leave = []func(){leave, s.o.afterLifetime(func() { s.close(closeLifetime, "Socket lifetime over") })}
	return true
}

// created and dispatched tell which of gqlgen's operations is which.
func (s *socket) created(op *graphql.OperationContext) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[op] = s.opening
}

func (s *socket) dispatched(op *graphql.OperationContext) *operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.running[op]
	delete(s.running, op)
	return o
}

// abandon is false if there is no such operation, which is no mistake: it may just have ended.
func (s *socket) abandon(m *message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.byClient[m.ID]
	if ok {
		delete(s.byClient, m.ID) // the client may use it again at once, so nothing that waits may come under it
		o.over = true
		o.q.drop()
		m.ID = o.ours
	}
	return ok
}
