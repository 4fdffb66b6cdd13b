// Package providertest is a fake OpenAI-compatible server for tests: it answers, and misbehaves, as each request is
// scripted to, and keeps a log of every request that reached it.
//
// The log counts requests, not intentions: a request that some layer sent again by itself is in it twice.
package providertest

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Entry is one request that reached the server.
type Entry struct {
	Number          int             `json:"number"` // from 1
	Key             string          `json:"key"`    // Idempotency-Key: the attempt's id
	ClientRequestID string          `json:"clientRequestId"`
	Traceparent     string          `json:"traceparent,omitempty"`
	Model           string          `json:"model"`
	At              time.Time       `json:"at"`
	Body            json.RawMessage `json:"body,omitempty"`
	Whole           bool            `json:"whole"`        // the body came to its end
	OnConnection    int             `json:"onConnection"` // the how manieth request of its connection, from 1
}

// Server is the fake. It is safe for concurrent use.
type Server struct {
	mu       sync.Mutex
	log      []Entry
	queue    []Behaviour
	byKey    map[string]Behaviour
	byModel  map[string]Behaviour
	arrived  chan struct{} // closed and replaced when the log grows
	released chan struct{} // closed and replaced by Release
	closing  chan struct{}
	ended    sync.Once
}

// NewServer returns a server for use as an http.Handler; Configure the http.Server that runs it.
func NewServer() *Server {
	return &Server{
		byKey: map[string]Behaviour{}, byModel: map[string]Behaviour{},
		arrived: make(chan struct{}), released: make(chan struct{}), closing: make(chan struct{}),
	}
}

// TB is the part of testing.TB that Start needs.
type TB interface {
	Helper()
	Cleanup(func())
}

// Start runs a server on loopback until the test ends and returns it with its base URL.
func Start(t TB) (*Server, string) {
	t.Helper()
	s := NewServer()
	h := httptest.NewUnstartedServer(s)
	s.Configure(h.Config)
	h.Start()
	t.Cleanup(func() {
		s.Close()
		h.CloseClientConnections()
		h.Close()
	})
	return s, h.URL + "/v1"
}

type connectionCount struct{}

// Configure sets an http.Server up to run s: it counts the requests of each connection.
func (s *Server) Configure(h *http.Server) {
	h.Handler = s
	h.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connectionCount{}, new(atomic.Int64))
	}
}

// Close lets go of all requests that are held.
func (s *Server) Close() { s.ended.Do(func() { close(s.closing) }) }

// Enqueue scripts the next requests, whatever they are, one each. The queue goes before keys, keys before models.
func (s *Server) Enqueue(b ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, b...)
}

// OnKey scripts all requests with that idempotency key.
func (s *Server) OnKey(key string, b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byKey[key] = b
}

// OnModel scripts all requests to that model. Models that are not scripted behave by their names, see ByModelName.
func (s *Server) OnModel(model string, b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byModel[model] = b
}

// Release lets all requests go on that are in the log now and held.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.released)
	s.released = make(chan struct{})
}

// Log returns all requests so far.
func (s *Server) Log() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Entry(nil), s.log...)
}

// Count returns how many requests carried that key.
func (s *Server) Count(key string) int {
	n := 0
	for _, e := range s.Log() {
		if e.Key == key {
			n++
		}
	}
	return n
}

// Wait returns when n requests have come in all, or with ctx's error.
func (s *Server) Wait(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		have, more := len(s.log), s.arrived
		s.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ServeHTTP answers POST …/chat/completions by script, GET /log with the log as a JSON array (?key= filters), and
// POST /release with a Release.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/log" && r.Method == http.MethodGet:
		s.serveLog(w, r)
	case r.URL.Path == "/release" && r.Method == http.MethodPost:
		s.Release()
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(r.URL.Path, "/chat/completions") && r.Method == http.MethodPost:
		s.serveCompletion(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) serveLog(w http.ResponseWriter, r *http.Request) {
	entries := []Entry{}
	for _, e := range s.Log() {
		if key := r.URL.Query().Get("key"); key == "" || key == e.Key {
			entries = append(entries, e)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(entries); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *Server) serveCompletion(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	e := Entry{
		Key: r.Header.Get("Idempotency-Key"), ClientRequestID: r.Header.Get("X-Client-Request-Id"),
		Traceparent: r.Header.Get("Traceparent"), At: time.Now().UTC(), Whole: err == nil,
	}
	if n, ok := r.Context().Value(connectionCount{}).(*atomic.Int64); ok {
		e.OnConnection = int(n.Add(1))
	}
	x := &Exchange{w: w, http: r, server: s}
	if json.Unmarshal(body, &x.Request) == nil {
		e.Body, e.Model = body, x.Request.Model
	}
	b, released := s.record(&e)
	x.Entry, x.released = e, released
	if !e.Whole {
		return
	}
	if b == nil {
		b = ByModelName(e.Model)
	}
	b(x)
}

// record logs the request and takes its script, nil if it has none, and the signal of the next Release.
func (s *Server) record(e *Entry) (Behaviour, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Number = len(s.log) + 1
	s.log = append(s.log, *e)
	close(s.arrived)
	s.arrived = make(chan struct{})
	if len(s.queue) > 0 {
		b := s.queue[0]
		s.queue = s.queue[1:]
		return b, s.released
	}
	if b, ok := s.byKey[e.Key]; ok {
		return b, s.released
	}
	return s.byModel[e.Model], s.released
}
