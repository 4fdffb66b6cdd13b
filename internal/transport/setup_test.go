package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/docket-gateway/docket/internal/await"
)

// drops is small in ordinary runs: go test ./internal/transport -run Baseline -drops 10000
var drops = flag.Int("drops", 200, "connects and drops of each kind")

// operations is an executor whose documents are names of streams.
type operations map[string]func(ctx context.Context) graphql.ResponseHandler

func (o operations) CreateOperationContext(_ context.Context, p *graphql.RawParams) (*graphql.OperationContext, gqlerror.List) {
	kind := ast.Subscription
	if strings.HasPrefix(p.Query, "mutation") {
		kind = ast.Mutation
	}
	return &graphql.OperationContext{RawQuery: p.Query, Operation: &ast.OperationDefinition{Operation: kind}}, nil
}

func (o operations) DispatchOperation(ctx context.Context, op *graphql.OperationContext) (graphql.ResponseHandler, context.Context) {
	return o[op.RawQuery](ctx), ctx
}

func (operations) DispatchError(_ context.Context, errs gqlerror.List) *graphql.Response {
	return &graphql.Response{Errors: errs}
}

func (operations) PresentRecoveredError(context.Context, any) error {
	return codedError("INTERNAL", "internal error")
}

// counted is a stream of the numbers after `after` up to last, padded to size bytes. last 0 is none: it goes on for ever.
type counted struct {
	after, last, size int
	made              atomic.Int64
	ended             atomic.Int64 // streams that are over for the executor
}

func (c *counted) open(ctx context.Context) graphql.ResponseHandler {
	context.AfterFunc(ctx, func() { c.ended.Add(1) })
	n := Resume(ctx, c.after)
	if c.last > 0 && n >= c.last {
		NothingMore(ctx)
	}
	return func(ctx context.Context) *graphql.Response {
		if c.last > 0 && n >= c.last || ctx.Err() != nil {
			return nil
		}
		n++
		c.made.Add(1)
		Announce(ctx, n)
		return number(n, c.size)
	}
}

func number(n, size int) *graphql.Response {
	text, err := json.Marshal(map[string]any{"n": n, "pad": strings.Repeat("x", size)})
	if err != nil {
		panic(err)
	}
	return &graphql.Response{Data: text}
}

// silent is a stream without elements. It ends with its context.
func silent(context.Context) graphql.ResponseHandler {
	return func(ctx context.Context) *graphql.Response {
		<-ctx.Done()
		return nil
	}
}

// server is an endpoint whose kernel buffers are small, as are its clients': what is made is either read or in our memory.
type server struct {
	*httptest.Server
	handler *Handler
	stop    context.CancelFunc // what a shutdown does first
	client  *http.Client
}

func serve(t *testing.T, all operations, o Options) *server {
	t.Helper()
	o.CheckOrigin = func(*http.Request) bool { return true }
	o.Init = func(ctx context.Context, _ map[string]any) (context.Context, error) { return ctx, nil }
	s := &server{handler: New(all, o)}
	s.Server = httptest.NewUnstartedServer(s.handler)
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	s.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if tcp, ok := c.(*net.TCPConn); ok && state == http.StateNew {
			_ = tcp.SetWriteBuffer(4 << 10)
		}
	}
	dialer := &net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}, ReadBufferSize: 4 << 10}
	s.client = &http.Client{Transport: transport}
	s.Start()
	t.Cleanup(func() {
		cancel()
		transport.CloseIdleConnections()
		s.Close()
	})
	return s
}

type socketClient struct {
	t    *testing.T
	conn *websocket.Conn
}

func (s *server) dial(t *testing.T) *socketClient {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), s.URL, &websocket.DialOptions{HTTPClient: s.client, Subprotocols: []string{subprotocol}})
	require.NoError(t, err)
	conn.SetReadLimit(1 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &socketClient{t, conn}
}

func (s *server) greet(t *testing.T) *socketClient {
	t.Helper()
	c := s.dial(t)
	c.send(`{"type":"connection_init"}`)
	require.Equal(t, "connection_ack", c.receive().Type)
	return c
}

func (c *socketClient) send(text string) {
	c.t.Helper()
	require.NoError(c.t, c.conn.Write(c.t.Context(), websocket.MessageText, []byte(text)))
}

func (c *socketClient) subscribe(id, query string) {
	c.t.Helper()
	c.send(`{"id":"` + id + `","type":"subscribe","payload":{"query":"` + query + `"}}`)
}

func (c *socketClient) receive() (m message) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), await.Patience)
	defer cancel()
	_, text, err := c.conn.Read(ctx)
	require.NoError(c.t, err)
	require.NoError(c.t, json.Unmarshal(text, &m))
	return m
}

// sse is one server-sent event.
type sse struct{ name, id, data string }

// events reads an event stream; the last one is named EOF.
func events(body io.Reader) func() sse {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	return func() (e sse) {
		for lines.Scan() {
			switch name, value, _ := strings.Cut(lines.Text(), ":"); name {
			case "event":
				e.name = strings.TrimSpace(value)
			case "id":
				e.id = strings.TrimSpace(value)
			case "data":
				e.data = strings.TrimSpace(value)
			case "":
				if e.name != "" {
					return e
				}
			}
		}
		return sse{name: "EOF"}
	}
}

// get asks as an EventSource does.
func (s *server) get(t *testing.T, query string, headers ...string) *http.Response {
	t.Helper()
	return s.ask(t, http.MethodGet, s.URL+"?query="+url.QueryEscape(query), "", headers...)
}

func (s *server) post(t *testing.T, query string, headers ...string) *http.Response {
	t.Helper()
	return s.ask(t, http.MethodPost, s.URL, `{"query":"`+query+`"}`, headers...)
}

func (s *server) ask(t *testing.T, method, address, body string, headers ...string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Accept", "text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}
