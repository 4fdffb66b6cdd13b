package transport

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
)

// closed is the code that the server closes with.
func (c *socketClient) closed() int {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), await.Patience)
	defer cancel()
	for {
		if _, _, err := c.conn.Read(ctx); err != nil {
			return int(websocket.CloseStatus(err))
		}
	}
}

// reset is a connection that ends with a reset, as when a machine loses its network.
func (s *server) reset(t *testing.T, request string, last string) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(await.Patience)))
	_, err = c.Write([]byte(request))
	require.NoError(t, err)
	lines := bufio.NewReader(c)
	for line := ""; !strings.Contains(line, last); {
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, c.(*net.TCPConn).SetLinger(0))
	require.NoError(t, c.Close())
}

func TestGoroutinesReturnToTheirBaselineAfterConnectsAndDrops(t *testing.T) { //nolint:paralleltest // it counts goroutines
	c := &counted{last: 1 << 30, size: 100}
	mutating := make(chan struct{}, 1)
	s := serve(t, operations{"silent": silent, "flood": c.open, "mutation": func(context.Context) graphql.ResponseHandler {
		return func(ctx context.Context) *graphql.Response {
			mutating <- struct{}{}
			<-ctx.Done() // as long as a client's socket lasts
			return nil
		}
	}}, Options{Backlog: 2})
	baseline := runtime.NumGoroutine()
	const handshake = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: " + subprotocol + "\r\n\r\n"
	kinds := map[string]func(){
		"before connection_init": func() { s.reset(t, handshake, "Sec-Websocket-Protocol") },
		"in the middle of a socket's stream": func() {
			socket := s.greet(t)
			socket.subscribe("1", "silent")
			socket.subscribe("2", "flood")
			socket.receive()
			_ = socket.conn.CloseNow()
		},
		"in the middle of an event stream": func() {
			s.reset(t, "GET /?query=flood HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n", "id: 3")
		},
		"in the middle of a silent event stream": func() {
			s.reset(t, "GET /?query=silent HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n", ":")
		},
		"during a mutation": func() {
			socket := s.greet(t)
			socket.subscribe("1", "mutation")
			<-mutating
			_ = socket.conn.CloseNow()
		},
		"with a good bye": func() {
			socket := s.greet(t)
			socket.subscribe("1", "silent")
			_ = socket.conn.Close(websocket.StatusNormalClosure, "")
		},
	}
	settled := func(most int) bool {
		s.client.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
		return runtime.NumGoroutine() <= most
	}
	for name, drop := range kinds {
		for range *drops {
			drop()
		}
		await.Until(t, "no goroutine is left by drops "+name, func() bool { return settled(baseline + 2) })
	}
	t.Logf("%d goroutines before and %d after %d connects and drops of each of %d kinds", baseline, runtime.NumGoroutine(), *drops, len(kinds))
}
