package transport

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

func TestHandshakesOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	h := New(nil, Options{CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == "" }})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/graphql", nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "WebSocket")
	r.Header.Set("Origin", "https://evil.example")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), CodeForbidden)
}

func TestAMalformedHandshakeIsRefusedWithACodeAndNotRepeated(t *testing.T) {
	t.Parallel()
	s := serve(t, operations{}, Options{})
	for name, headers := range map[string][]string{
		"no key":        {"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13"},
		"other version": {"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "canary", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
		"no connection": {"Connection", "canary", "Upgrade", "websocket", "Sec-WebSocket-Version", "13"},
	} {
		resp := s.get(t, "s", headers...)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.GreaterOrEqual(t, resp.StatusCode, http.StatusBadRequest, name)
		require.Equal(t, "application/json; charset=utf-8", resp.Header.Get("Content-Type"), name)
		require.JSONEq(t, `{"errors":[{"message":"the WebSocket handshake is malformed","extensions":{"code":"BAD_REQUEST"}}]}`, string(body), name)
	}
}

func TestMessagesThatAreNoTextOrTooLongCloseTheSocket(t *testing.T) {
	t.Parallel()
	s := serve(t, operations{}, Options{BodyLimit: 1000})
	socket := s.greet(t)
	require.NoError(t, socket.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"ping"}`)))
	require.Equal(t, closeBadMessage, socket.closed())
	socket = s.greet(t)
	socket.send(`{"type":"ping","payload":{"a":"` + strings.Repeat("x", 1000) + `"}}`)
	require.Equal(t, int(websocket.StatusMessageTooBig), socket.closed())
}

// Both may come at any time, and keep nobody from having to introduce himself.
func TestPingAndPongMayComeBeforeTheInitialisation(t *testing.T) {
	t.Parallel()
	s := serve(t, operations{}, Options{})
	c := s.dial(t)
	c.send(`{"type":"pong"}`)
	c.send(`{"type":"ping","payload":{"a":1}}`)
	require.Equal(t, message{Type: "pong"}, c.receive())
	c.send(`{"type":"connection_init"}`)
	require.Equal(t, "connection_ack", c.receive().Type)
	c.send(`{"type":"ping","payload":{"a":1}}`)
	require.Equal(t, message{Type: "pong", Payload: []byte(`{"a":1}`)}, c.receive())
}

func TestPingsHoldNoSocketPastTheInitTimeout(t *testing.T) {
	t.Parallel()
	s := serve(t, operations{}, Options{InitTimeout: 100 * time.Millisecond})
	c := s.dial(t)
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for c.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"ping"}`)) == nil { //nolint:revive // until it is closed
		}
	}()
	require.Equal(t, closeInitTimeout, c.closed())
	<-flooded

	deaf := s.dial(t) // it asks and asks and reads nothing
	for deaf.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"ping"}`)) == nil { //nolint:revive // until it is closed
	}
	s.stop()
	require.NoError(t, s.handler.Wait(t.Context()))
}
