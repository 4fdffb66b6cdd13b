package webtest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/web"
)

const stubJob = "job_01jstub"

// stub serves the page and a /graphql that knows what the page's own operations need.
type stub struct {
	introspection []byte

	mu         sync.Mutex
	operations []string
}

type request struct {
	OperationName string         `json:"operationName"`
	Query         string         `json:"query"`
	Variables     map[string]any `json:"variables"`
}

func (s *stub) ran(operation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.operations = append(s.operations, operation)
}

func (s *stub) operationsRun() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.operations...)
}

func newStub(t *testing.T) (*stub, *httptest.Server) {
	t.Helper()
	introspection, err := os.ReadFile("../testdata/introspection.json")
	require.NoError(t, err)
	page, err := web.Handler(web.Options{})
	require.NoError(t, err)
	s := &stub{introspection: introspection}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	// Behind the guard, to prove that it lets the server's own page through.
	guard := auth.NewDevGuard()
	mux.Handle("POST /graphql", guard.Handler(http.HandlerFunc(s.post)))
	mux.Handle("GET /graphql", guard.Handler(http.HandlerFunc(s.socket)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return s, server
}

func (s *stub) post(w http.ResponseWriter, r *http.Request) {
	var q request
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &q) != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	s.ran(q.OperationName)
	switch q.OperationName {
	case "IntrospectionQuery":
		_, _ = w.Write(s.introspection)
	case "CreateJob":
		_, _ = io.WriteString(w, `{"data":{"createJob":{"__typename":"CreateJobSuccess","replayed":false,"job":{"id":"`+stubJob+
			`","state":"QUEUED","target":"demo/inkjet","fallbacks":["demo/laser"]}}}}`)
	default:
		_, _ = io.WriteString(w, `{"errors":[{"message":"the stub does not know this operation"}]}`)
	}
}

// socket speaks as much graphql-transport-ws as one subscription needs.
func (s *stub) socket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return
	}
	defer func() { _ = c.CloseNow() }()
	for {
		var m struct {
			ID      string  `json:"id"`
			Type    string  `json:"type"`
			Payload request `json:"payload"`
		}
		if wsjson.Read(r.Context(), c, &m) != nil {
			return
		}
		switch m.Type {
		case "connection_init":
			_ = wsjson.Write(r.Context(), c, map[string]string{"type": "connection_ack"})
		case "subscribe":
			s.ran(m.Payload.OperationName)
			s.attempts(r.Context(), c, m.ID, m.Payload)
		}
	}
}

func (s *stub) attempts(ctx context.Context, c *websocket.Conn, id string, q request) {
	if !strings.Contains(q.Query, `attemptUpdated(jobId: "`+stubJob+`")`) {
		_ = wsjson.Write(ctx, c, map[string]any{"id": id, "type": "error", "payload": []any{map[string]string{"message": "no such job"}}})
		return
	}
	for _, state := range []string{"RUNNING", "SUCCEEDED"} {
		attempt := map[string]any{"number": 2, "reason": "FALLBACK", "target": "demo/laser", "state": state, "error": nil}
		_ = wsjson.Write(ctx, c, map[string]any{"id": id, "type": "next",
			"payload": map[string]any{"data": map[string]any{"attemptUpdated": attempt}}})
	}
	_ = wsjson.Write(ctx, c, map[string]string{"id": id, "type": "complete"})
}
