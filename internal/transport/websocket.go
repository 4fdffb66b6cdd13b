package transport

import (
	"context"
	"errors"
	"net/http"

	gqltransport "github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/coder/websocket"
)

const subprotocol = "graphql-transport-ws"

// Close codes of graphql-transport-ws.
const (
	closeBadMessage     = 4400
	closeUnauthorized   = 4401
	closeForbidden      = 4403
	closeBadSubprotocol = 4406
	closeInitTimeout    = 4408
	closeDuplicateID    = 4409
	closeTooManyInits   = 4429
	closeGoingAway      = 1001
)

// webSocket runs gqlgen's transport over a connection that keeps to the protocol, see socket.
func (h *Handler) webSocket(w http.ResponseWriter, r *http.Request) {
	if !h.o.CheckOrigin(r) {
		refuse(w, jsonType, http.StatusForbidden, CodeForbidden, "this origin may not open a WebSocket")
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // CheckOrigin has decided
	})
	if err != nil {
		h.o.Logger.InfoContext(r.Context(), "a WebSocket handshake failed", "error", err)
		return // Accept has answered
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

	s := newSocket(r.Context(), conn, h.o) //nolint:contextcheck // the request's
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
			s.bind(initialised)
			return initialised, nil, nil
		},
		PingPongInterval: h.o.PingInterval,
		PayloadReadLimit: &h.o.BodyLimit,
	}.Do(w, r, h.exec)
}

// accepted hands gqlgen a connection that exists already.
type accepted struct{ s *socket }

func (a accepted) Accept(http.ResponseWriter, *http.Request, gqltransport.WebsocketAcceptOptions) (gqltransport.WebsocketConn, error) {
	return a.s, nil
}
