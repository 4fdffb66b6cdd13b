package transport

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
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
		for c.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"ping"}`)) == nil { // until it is closed
		}
	}()
	require.Equal(t, closeInitTimeout, c.closed())
	<-flooded

	deaf := s.dial(t) // it asks and asks and reads nothing
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for deaf.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"ping"}`)) == nil { // until it is closed
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	require.NoError(t, s.handler.Wait(ctx))
	_ = deaf.conn.CloseNow()
	<-stopped
}

func TestAFrameThatBreaksTheProtocolIsAProtocolError(t *testing.T) {
	t.Parallel()
	s := serve(t, operations{}, Options{})
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(await.Patience)))
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: "+subprotocol+"\r\n\r\n"+
		"\x81\x9a\x00\x00\x00\x00"+`{"type":"connection_init"}`+"\x81\x02{}") // the second one has no mask
	require.NoError(t, err)
	in := bufio.NewReader(c)
	for line := ""; line != "\r\n"; {
		line, err = in.ReadString('\n')
		require.NoError(t, err)
	}
	frame := []byte{0, 0}
	payload := []byte{}
	for frame[0] != 0x88 { // it closes
		_, err = io.ReadFull(in, frame)
		require.NoError(t, err)
		payload = make([]byte, frame[1])
		_, err = io.ReadFull(in, payload)
		require.NoError(t, err)
	}
	require.EqualValues(t, websocket.StatusProtocolError, binary.BigEndian.Uint16(payload))
}

// gqlgen closes from a goroutine that may be late, when nobody waits for the socket any more.
func TestWhatIsOverIsNotClosedAgain(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		s := newSocket(r.Context(), conn, Options{}.withDefaults(), &wg)
		s.stop()
		_ = s.WriteClose(int(websocket.StatusNormalClosure), "terminated")
	}))
	t.Cleanup(server.Close)
	c, _, err := websocket.Dial(t.Context(), server.URL, nil)
	require.NoError(t, err)
	defer func() { _ = c.CloseNow() }()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	_, _, err = c.Read(ctx)
	require.Error(t, err)
	require.EqualValues(t, -1, websocket.CloseStatus(err), "%v", err)
}
