package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
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

	out       *outbox
	wg        *sync.WaitGroup // of all sockets
	initTimer *time.Timer
	unbind    func() bool // from ctx
	opening   *operation  // the last one that gqlgen was given; only the reader of messages looks
	leave     []func()    // of gqlgen's own goroutine

	mu          sync.Mutex
	ctx         context.Context // of the handshake, then of the connection as it was initialised
	initialised bool
	closing     bool
	byClient    map[string]*operation // by the client's id, while it may not be used again
	byOurs      map[string]*operation
	running     map[*graphql.OperationContext]*operation
	last        int
	deadline    *time.Timer
}

var (
	_ gqltransport.WebsocketConn          = (*socket)(nil)
	_ gqltransport.WebsocketReadDeadliner = (*socket)(nil)
)

func newSocket(ctx context.Context, conn *websocket.Conn, o Options, wg *sync.WaitGroup) *socket {
	s := &socket{
		ctx: ctx, conn: conn, o: o, wg: wg,
		byClient: map[string]*operation{}, byOurs: map[string]*operation{}, running: map[*graphql.OperationContext]*operation{},
	}
	s.out = newOutbox(s.write, wg, o.MaxOperations)
	s.initTimer = time.AfterFunc(o.InitTimeout, func() {
		s.mu.Lock()
		late := !s.initialised
		s.mu.Unlock()
		if late {
			s.close(closeInitTimeout, "Connection initialisation timeout")
		}
	})
	// gqlgen looks at its context only after connection_init.
	s.unbind = context.AfterFunc(ctx, func() { _ = s.WriteClose(gqltransport.WebsocketCloseNormalClosure, "") }) //nolint:contextcheck // it is over
	return s
}

// NextReader returns the next message that is fit for gqlgen.
func (s *socket) NextReader() (int, io.Reader, error) {
	for {
		if !s.out.admit() {
			return 0, nil, net.ErrClosed
		}
		kind, data, err := s.conn.Read(context.Background())
		if err != nil {
			if code := websocket.CloseStatus(err); code == websocket.StatusNormalClosure || code == websocket.StatusNoStatusRcvd {
				err = gqltransport.ErrWebsocketClosed
			} else if !lost(err) { // not all that breaks the protocol is closed by the library
				s.close(closeProtocolError, "Protocol error")
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
			if wait := s.o.take(s.bound()); wait > 0 {
				answer = errorMessage(answer.ID, rateLimited(wait))
			}
			s.reply(answer)
			continue
		}
		forward := true
		switch m.Type {
		case "connection_init":
			if !s.initialise() {
				return s.refuse(closeTooManyInits, "Too many initialisation requests")
			}
		case "subscribe":
			code, reason, refused := s.open(&m)
			if code != 0 {
				return s.refuse(code, reason)
			}
			if refused != nil {
				forward = false
				s.reply(errorMessage(m.ID, refused))
			}
		case "complete":
			forward = s.abandon(&m)
		case "ping", "pong":
			// gqlgen takes them for a mistake before connection_init. The answer has no payload then: memory is for who is known.
			if !s.begun() {
				forward = false
				if m.Type == "ping" {
					s.reply(message{Type: "pong"})
				}
			}
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

func (s *socket) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialised
}

// WriteJSON sends one of gqlgen's messages under the client's id, or drops it if the operation is over for the client. It
// does not wait: gqlgen calls it under a lock.
func (s *socket) WriteJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	switch m.Type {
	case "next", "error", "complete":
		if _, over := ended(s.bound()); over { // what follows from the end is none of the operation's own
			return nil
		}
		m = asError(m)
		s.mu.Lock()
		o := s.byOurs[m.ID]
		s.mu.Unlock()
		if o == nil {
			return nil
		}
		if m.ID = o.client; m.Type != "next" {
			s.finish(o, m)
			return nil
		}
		s.say(o, m)
	default:
		s.reply(m)
	}
	return nil
}

// finish says the last that the client hears of an operation.
func (s *socket) finish(o *operation, m message) {
	s.mu.Lock()
	heard := !o.over
	o.over = true
	delete(s.byOurs, o.ours)
	if s.byClient[o.client] == o {
		delete(s.byClient, o.client)
	}
	s.mu.Unlock()
	if heard {
		s.out.send(o.q, encodeMessage(m))
	}
}

func (s *socket) say(o *operation, m message) {
	s.mu.Lock()
	heard := !o.over
	s.mu.Unlock()
	if heard {
		s.out.send(o.q, encodeMessage(m))
	}
}

func (s *socket) reply(m message) { s.out.reply(encodeMessage(m)) }

func encodeMessage(m message) []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // not reachable: the payload was encoded before
	}
	return text
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

// write gives up the connection to a client that does not read.
func (s *socket) write(text []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.o.WriteTimeout)
	defer cancel()
	err := s.conn.Write(ctx, websocket.MessageText, text)
	if err != nil {
		_ = s.conn.CloseNow()
	}
	return err
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
	defer s.mu.Unlock()
	if !s.closing {
		s.closing = true
		s.wg.Go(func() { _ = s.conn.Close(websocket.StatusCode(code), reason) })
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

// stop ends what may still run when gqlgen is done with the connection. A goroutine of its own may want to close it later yet.
func (s *socket) stop() {
	s.initTimer.Stop()
	s.unbind()
	for _, leave := range s.leave {
		leave()
	}
	_ = s.SetReadDeadline(time.Time{})
	s.out.fail()
	_ = s.Close()
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
