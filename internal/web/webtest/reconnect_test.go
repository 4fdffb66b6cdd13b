package webtest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/web"
)

// restless closes each connection with the next of its codes, after one event; with tooManySockets before that, as a gateway does. 0
// stands for a connection that breaks.
type restless struct {
	codes []websocket.StatusCode

	mu          sync.Mutex
	connections int
	subscribed  []request
}

const tooManySockets = 4430

func (s *restless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		http.Error(w, "only sockets here", http.StatusBadGateway)
		return
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return
	}
	defer func() { _ = c.CloseNow() }()
	n := s.connected()
	if n > len(s.codes) {
		return
	}
	code := s.codes[n-1]
	for {
		var m struct {
			ID      string  `json:"id"`
			Type    string  `json:"type"`
			Payload request `json:"payload"`
		}
		if wsjson.Read(r.Context(), c, &m) != nil {
			return
		}
		switch {
		case code == tooManySockets:
			_ = c.Close(code, "Too many sockets")
			return
		case m.Type == "connection_init":
			_ = wsjson.Write(r.Context(), c, map[string]string{"type": "connection_ack"})
		case m.Type == "subscribe":
			s.add(m.Payload)
			_ = wsjson.Write(r.Context(), c, map[string]any{"id": m.ID, "type": "next",
				"payload": map[string]any{"data": map[string]any{"events": map[string]any{"n": n, "type": "JOB_STATE"}}}})
			if code != 0 {
				_ = c.Close(code, "as the test wants")
			}
			return
		}
	}
}

func (s *restless) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections++
	return s.connections
}

func (s *restless) add(q request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribed = append(s.subscribed, q)
}

func (s *restless) asked() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.subscribed...)
}

func TestPageGoesOnAfterLostConnectionsAndStopsAtRefusals(t *testing.T) {
	t.Parallel()
	page, err := web.Handler(web.Options{Token: true})
	require.NoError(t, err)
	s := &restless{codes: []websocket.StatusCode{
		websocket.StatusGoingAway, 4410, 0, 4403, // Literal
		0, tooManySockets, 4429, // Variable
		tooManySockets, // Variable
	}}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	mux.Handle("/graphql", s)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	p := Open(t, server.URL+"/")
	p.holds(operations, "asks who you are. Write under Headers")
	p.Until(shown("The answer is not JSON: HTTP 502."))
	p.write(operations, `subscription Literal { events: jobEvents(jobId: "j", after: 0) { n: number type } }
		subscription Variable($after: Int) { events: jobEvents(jobId: "j", after: $after) { n: number type } }
		query Query { viewer { subject } }`)
	p.run("Literal")
	p.Until(shown("The credentials have expired or were revoked (4403 as the test wants)."))
	require.NotContains(t, p.Text(response), "stack")
	asked := s.asked()
	require.Len(t, asked, 4)
	for i, after := range []string{"after: 0", "after: 1", "after: 2", "after: 3"} {
		require.Contains(t, asked[i].Query, after)
	}
	require.Contains(t, p.flat(response), "The last event was number 4: go on with after: 4.")
	p.Until(says("The credentials have expired or were revoked (4403"))

	// With a socket that is lost and may still be counted, one more is tried; the first is not.
	p.run("Variable")
	p.Until(shown("The gateway has closed the connection: 4429 as the test wants."))
	asked = s.asked()[4:]
	require.Len(t, asked, 2)
	require.Nil(t, asked[0].Variables["after"])
	require.EqualValues(t, 5, asked[1].Variables["after"])
	require.Empty(t, p.flat(notice))
	p.run("Variable")
	p.Until(shown("Too many sockets of yours are open at this gateway."))

	p.write(headers, `{"Authorization": "Bearer …"}`)
	p.run("Query")
	p.Until(shown("what stands under Headers cannot be a header"))
	p.write(headers, ``)
	server.Close()
	p.run("Query")
	p.Until(shown("The gateway does not answer."))
	require.NotContains(t, p.Text(response), "stack")
	p.run("Literal")
	p.Until(says("The gateway does not answer. Connecting again …"))
	p.Do(chromedp.Click(executeButton))
	p.Until("!(" + stopButton + ")")
	require.Empty(t, p.flat(notice))
}
