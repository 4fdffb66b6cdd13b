package transport

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
