package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
)

// message is one thing that a stream brought: a response, or its end.
type message struct {
	response

	end string // "complete", or what went wrong
}

// stream is a running subscription.
type stream struct{ messages chan message }

// next waits for the next message.
func (s *stream) next(t *testing.T) message {
	t.Helper()
	return await.Receive(t, "the stream's next message", s.messages)
}

// item decodes the next message, which must be the value of the field.
func item[T any](t *testing.T, s *stream, name string) T {
	t.Helper()
	m := s.next(t)
	require.Empty(t, m.end)
	require.Empty(t, m.Errors)
	return decode[T](t, m.Data[name])
}

// rest decodes all further messages up to the end, which must be a good one.
func rest[T any](t *testing.T, s *stream, name string) []T {
	t.Helper()
	var out []T
	for {
		m := s.next(t)
		if m.end != "" {
			require.Equal(t, "complete", m.end)
			return out
		}
		require.Empty(t, m.Errors)
		out = append(out, decode[T](t, m.Data[name]))
	}
}

// transports are the ways to watch.
var transports = map[string]func(c *client, t *testing.T, query string, vars variables) *stream{
	"WebSocket": (*client).overWebSocket,
	"SSE":       (*client).overSSE,
}

// overWebSocket runs any operation over a socket of its own.
func (c *client) overWebSocket(t *testing.T, query string, vars variables) *stream {
	t.Helper()
	conn, err := c.dial(t.Context())
	require.NoError(t, err)
	s := &stream{messages: make(chan message, 1000)}
	require.NoError(t, wsjson.Write(t.Context(), conn, map[string]any{
		"id": "1", "type": "subscribe", "payload": map[string]any{"query": query, "variables": vars},
	}))
	t.Cleanup(func() { _ = conn.CloseNow() })
	go func() {
		for {
			m, err := read(t.Context(), conn)
			if err != nil {
				m = message{end: "broken: " + err.Error()}
			}
			s.messages <- m
			if m.end != "" {
				return
			}
		}
	}()
	return s
}

// dial opens a socket and introduces itself.
func (c *client) dial(ctx context.Context) (*websocket.Conn, error) {
	conn, res, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(c.url, "http")+"/graphql", &websocket.DialOptions{
		HTTPClient: c.http, Subprotocols: []string{"graphql-transport-ws"},
	})
	if err != nil {
		return nil, err
	}
	if res.Body != nil {
		_ = res.Body.Close()
	}
	conn.SetReadLimit(8 << 20)
	payload := map[string]string{}
	if a := c.authorization(); a != "" {
		payload["Authorization"] = a
	}
	if err := wsjson.Write(ctx, conn, map[string]any{"type": "connection_init", "payload": payload}); err != nil {
		return nil, err
	}
	var ack struct{ Type string }
	if err := wsjson.Read(ctx, conn, &ack); err != nil {
		return nil, err
	}
	if ack.Type != "connection_ack" {
		return nil, fmt.Errorf("%q instead of an acknowledgement", ack.Type)
	}
	return conn, nil
}

func read(ctx context.Context, conn *websocket.Conn) (message, error) {
	for {
		var m struct {
			Type    string
			Payload json.RawMessage
		}
		if err := wsjson.Read(ctx, conn, &m); err != nil {
			return message{}, err
		}
		switch m.Type {
		case "ping":
			if err := wsjson.Write(ctx, conn, map[string]string{"type": "pong"}); err != nil {
				return message{}, err
			}
		case "next":
			var out message
			return out, json.Unmarshal(m.Payload, &out.response)
		case "error":
			out := message{end: "error"}
			return out, json.Unmarshal(m.Payload, &out.Errors)
		default:
			return message{end: m.Type}, nil
		}
	}
}

// overSSE runs any operation as an event stream.
func (c *client) overSSE(t *testing.T, query string, vars variables) *stream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/graphql", bytes.NewReader(body(query, vars)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if a := c.authorization(); a != "" {
		req.Header.Set("Authorization", a)
	}
	res, err := c.http.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	require.Equal(t, http.StatusOK, res.StatusCode)
	s := &stream{messages: make(chan message, 1000)}
	go func() {
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 8<<20)
		var kind, comment string
		for lines.Scan() {
			line := lines.Text()
			if said, ok := strings.CutPrefix(line, ": "); ok {
				comment = said
			}
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				kind = name
				continue
			}
			data, ok := strings.CutPrefix(line, "data:")
			if !ok {
				continue
			}
			if kind == "complete" {
				s.messages <- message{end: kind}
				return
			}
			var m message
			if err := json.Unmarshal([]byte(data), &m.response); err != nil {
				m.end = "broken: " + err.Error()
			}
			s.messages <- m
		}
		s.messages <- message{end: fmt.Sprintf("broken: %v, %s", lines.Err(), comment)}
	}()
	return s
}
