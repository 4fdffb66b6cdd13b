package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"time"

	gqltransport "github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/coder/websocket"

	"github.com/docket-gateway/docket/internal/canonical"
)

// message is any message of graphql-transport-ws.
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// socket is the protocol's guard between a client and gqlgen. gqlgen accepts operations with an id that is taken, closes
// with codes of its own and answers an operation after its end; here each operation gets an id of ours on the way in, so
// that what an ended one says late can be told apart and dropped.
type socket struct {
	conn *websocket.Conn
	o    Options

	initTimer *time.Timer

	mu          sync.Mutex
	ctx         context.Context // of the handshake, then of the connection as it was initialised
	initialised bool
	closing     bool
	byClient    map[string]string // the client's id of an open operation: ours
	byOurs      map[string]string
	last        int
	deadline    *time.Timer
}

var (
	_ gqltransport.WebsocketConn          = (*socket)(nil)
	_ gqltransport.WebsocketReadDeadliner = (*socket)(nil)
)

func newSocket(ctx context.Context, conn *websocket.Conn, o Options) *socket {
	s := &socket{ctx: ctx, conn: conn, o: o, byClient: map[string]string{}, byOurs: map[string]string{}}
	s.initTimer = time.AfterFunc(o.InitTimeout, func() {
		s.mu.Lock()
		late := !s.initialised
		s.mu.Unlock()
		if late {
			s.close(closeInitTimeout, "Connection initialisation timeout")
		}
	})
	return s
}

// NextReader returns the next message that is fit for gqlgen.
func (s *socket) NextReader() (int, io.Reader, error) {
	for {
		kind, data, err := s.conn.Read(context.Background())
		if err != nil {
			if code := websocket.CloseStatus(err); code == websocket.StatusNormalClosure || code == websocket.StatusNoStatusRcvd {
				err = gqltransport.ErrWebsocketClosed
			}
			return 0, nil, err
		}
		m, ok := parse(kind, data)
		if !ok {
			answer, ok := malformed(kind, data)
			if !ok {
				return s.refuse(closeBadMessage, "Invalid message")
			}
			if code, reason := s.admits(answer.ID); code != 0 {
				return s.refuse(code, reason)
			}
			_ = s.write(answer) // a client that is gone needs no answer
			continue
		}
		forward := true
		switch m.Type {
		case "connection_init":
			if !s.initialise() {
				return s.refuse(closeTooManyInits, "Too many initialisation requests")
			}
		case "subscribe":
			code, reason, full := s.open(&m)
			if code != 0 {
				return s.refuse(code, reason)
			}
			if full {
				forward = false
				_ = s.write(tooManyOperations(m.ID)) // a client that is gone needs no answer
			}
		case "complete":
			forward = s.abandon(&m)
		case "ping", "pong":
		default:
			return s.refuse(closeBadMessage, "Invalid message")
		}
		if !forward {
			continue
		}
		text, err := json.Marshal(m)
		if err != nil {
			return 0, nil, err
		}
		return int(websocket.MessageText), bytes.NewReader(text), nil
	}
}

// parse reads names byte for byte, as the standard decoder does not.
func parse(kind websocket.MessageType, data []byte) (m message, ok bool) {
	if kind != websocket.MessageText || canonical.Check(data) != nil {
		return m, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return m, false
	}
	if json.Unmarshal(orNull(fields["type"]), &m.Type) != nil || json.Unmarshal(orNull(fields["id"]), &m.ID) != nil {
		return m, false
	}
	if payload := fields["payload"]; payload != nil && !bytes.Equal(payload, []byte("null")) {
		if payload[0] != '{' {
			return m, false
		}
		m.Payload = payload
	}
	return m, true
}

func (s *socket) initialise() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.initialised {
		return false
	}
	s.initialised = true
	s.initTimer.Stop()
	return true
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

// open gives an operation its own id. code is that to close with, 0 if the message is right.
func (s *socket) open(m *message) (code int, reason string, full bool) {
	if code, reason := s.admits(m.ID); code != 0 {
		return code, reason, false
	}
	params, p := decode(orNull(m.Payload))
	if p != nil {
		return closeBadMessage, "Invalid message", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byOurs) >= s.o.MaxOperations {
		return 0, "", true
	}
	// Written anew from what was checked: gqlgen's decoder would take QUERY for query.
	payload, err := json.Marshal(params)
	if err != nil {
		return closeBadMessage, "Invalid message", false
	}
	s.last++
	ours := strconv.Itoa(s.last)
	s.byClient[m.ID], s.byOurs[ours] = ours, m.ID
	m.ID, m.Payload = ours, payload
	return 0, "", false
}

// abandon is false if there is no such operation, which is no mistake: it may just have ended.
func (s *socket) abandon(m *message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ours, ok := s.byClient[m.ID]
	if ok {
		delete(s.byClient, m.ID) // the client may use it again at once
		s.byOurs[ours] = ""
		m.ID = ours
	}
	return ok
}

// WriteJSON sends one of gqlgen's messages under the client's id, or drops it if the operation is over for the client.
func (s *socket) WriteJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	if m.Type == "next" || m.Type == "error" || m.Type == "complete" {
		m = asError(m)
		ours := m.ID
		s.mu.Lock()
		m.ID = s.byOurs[ours]
		if m.Type != "next" {
			delete(s.byOurs, ours)
			delete(s.byClient, m.ID)
		}
		s.mu.Unlock()
		if m.ID == "" {
			return nil
		}
	}
	if _, over := ended(s.bound()); over { // what follows from the end is none of the operation's own
		return nil
	}
	return s.write(m)
}

// bind makes the connection end with ctx.
func (s *socket) bind(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
}

func (s *socket) bound() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx
}

// asError turns a response without data into the message that says so: the request was refused, or its stream broke.
func asError(m message) message {
	if m.Type != "next" {
		return m
	}
	var resp struct {
		Data   json.RawMessage `json:"data"`
		Errors json.RawMessage `json:"errors"`
	}
	if json.Unmarshal(m.Payload, &resp) == nil && bytes.Equal(resp.Data, []byte("null")) && resp.Errors != nil {
		m.Type, m.Payload = "error", resp.Errors
	}
	return m
}

func tooManyOperations(id string) message {
	return errorMessage(id, codedError(CodeTooManyOperations, "too many operations on this socket"))
}

// write gives up the connection to a client that does not read.
func (s *socket) write(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.o.WriteTimeout)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, text)
}

// WriteClose is for gqlgen, whose code for a connection that ends from our side is that of a good end.
func (s *socket) WriteClose(code int, reason string) error {
	if code == gqltransport.WebsocketCloseNormalClosure {
		code, reason = closeGoingAway, "Going away"
		if e, ok := ended(s.bound()); ok {
			code, reason = closing(e)
		}
	}
	s.close(code, reason)
	return nil
}

func (s *socket) refuse(code int, reason string) (int, io.Reader, error) {
	s.close(code, reason)
	return 0, nil, gqltransport.ErrWebsocketClosed
}

// close says why, once, and does not wait for the client to agree.
func (s *socket) close(code int, reason string) {
	s.mu.Lock()
	first := !s.closing
	s.closing = true
	s.mu.Unlock()
	if first {
		go func() { _ = s.conn.Close(websocket.StatusCode(code), reason) }()
	}
}

// Close ends a connection that was not closed with a reason; one that was ends by its own handshake.
func (s *socket) Close() error {
	s.mu.Lock()
	closing := s.closing
	s.closing = true
	s.mu.Unlock()
	if closing {
		return nil
	}
	return s.conn.CloseNow()
}

// stop ends what may still run when gqlgen is done with the connection.
func (s *socket) stop() {
	s.initTimer.Stop()
	_ = s.SetReadDeadline(time.Time{})
}

// Subprotocol implements gqlgen's connection.
func (s *socket) Subprotocol() string { return s.conn.Subprotocol() }

// SetReadDeadline ends the connection at t, unless another deadline is set before; zero is none.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadline != nil {
		s.deadline.Stop()
		s.deadline = nil
	}
	if !t.IsZero() {
		s.deadline = time.AfterFunc(time.Until(t), func() { _ = s.conn.CloseNow() })
	}
	return nil
}
