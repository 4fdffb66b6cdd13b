package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	gqltransport "github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/coder/websocket"
)

const subprotocol = "graphql-transport-ws"

// Close codes of graphql-transport-ws. Those that it does not know are ours: clients of that protocol connect again.
const (
	closeBadMessage     = 4400
	closeUnauthorized   = 4401
	closeForbidden      = 4403
	closeBadSubprotocol = 4406
	closeInitTimeout    = 4408
	closeDuplicateID    = 4409
	closeLifetime       = 4410 // ours
	closeTooManyInits   = 4429
	closeTooManySockets = 4430 // ours
	closeGoingAway      = 1001
	closeProtocolError  = 1002
)

// lost is true of the error of a connection that has ended, with or without a reason.
func lost(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || websocket.CloseStatus(err) != -1 ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// webSocket runs gqlgen's transport over a connection that keeps to the protocol, see socket.
func (h *Handler) webSocket(w http.ResponseWriter, r *http.Request) {
	if !h.o.CheckOrigin(r) {
		refuse(w, jsonType, http.StatusForbidden, CodeForbidden, "this origin may not open a WebSocket")
		return
	}
	answer := &handshake{ResponseWriter: w}
	conn, err := websocket.Accept(answer, r, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // CheckOrigin has decided
	})
	if err != nil {
		h.o.Logger.InfoContext(r.Context(), "a WebSocket handshake failed", "status", answer.refused)
		if answer.refused != 0 {
			refuse(w, jsonType, answer.refused, CodeBadRequest, "the WebSocket handshake is malformed")
		}
		return
	}
	if conn.Subprotocol() != subprotocol { // gqlgen would take that for its oldest protocol
		_ = conn.Close(closeBadSubprotocol, "Subprotocol not acceptable")
		return
	}
	conn.SetReadLimit(h.o.BodyLimit)

	// Headers of a handshake are not those of one request: neither the key of an intent nor its trace has a place here.
	r = r.Clone(r.Context())
	r.Header.Del("Idempotency-Key")
	r.Header.Del("Traceparent")

	h.sockets.Add(1)
	defer h.sockets.Done()
	s := newSocket(r.Context(), conn, h.o, &h.sockets) //nolint:contextcheck // the request's
	defer s.stop()
	gqltransport.Websocket{
		Implementation: accepted{s},
		InitFunc: func(ctx context.Context, payload gqltransport.InitPayload) (context.Context, *gqltransport.InitPayload, error) {
			initialised, err := h.o.Init(ctx, payload)
			if err != nil {
				code, reason := closeForbidden, "Forbidden"
				if e, ok := ending(err); ok {
					code, reason = closing(e)
				}
				return gqltransport.WithWebsocketCloseCode(gqltransport.AppendCloseReason(ctx, reason), code), nil,
					errors.New("forbidden")
			}
			if !s.enter(initialised) {
				return gqltransport.WithWebsocketCloseCode(gqltransport.AppendCloseReason(ctx, "Too many sockets"), closeTooManySockets), nil,
					errors.New(tooManySockets)
			}
			s.bind(initialised)
			return initialised, nil, nil
		},
		PingPongInterval: h.o.PingInterval,
		PayloadReadLimit: &h.o.BodyLimit,
	}.Do(w, r, paced{h.exec, s})
}

// handshake keeps back the library's own refusal, which is plain text and repeats the request's headers.
type handshake struct {
	http.ResponseWriter
	refused int // status
}

// WriteHeader implements http.ResponseWriter.
func (h *handshake) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		h.refused = status
		return
	}
	h.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (h *handshake) Write(p []byte) (int, error) {
	if h.refused != 0 {
		return len(p), nil
	}
	return h.ResponseWriter.Write(p)
}

// Unwrap is for who takes the connection over.
func (h *handshake) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// accepted hands gqlgen a connection that exists already.
type accepted struct{ s *socket }

func (a accepted) Accept(http.ResponseWriter, *http.Request, gqltransport.WebsocketAcceptOptions) (gqltransport.WebsocketConn, error) {
	return a.s, nil
}
