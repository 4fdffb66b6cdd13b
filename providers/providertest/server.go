// Package providertest is a fake provider for tests: it answers, and misbehaves, as each request is
// scripted to, and keeps a log of every request that reached it. By itself it speaks OpenAI's Chat Completions as
// compatible servers do; other protocols bring their own behaviours, and a Protocol that says which requests are theirs.
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
	Method          string          `json:"method"`
	Path            string          `json:"path"`
	Key             string          `json:"key"` // Idempotency-Key: the attempt's id
	ClientRequestID string          `json:"clientRequestId"`
	Traceparent     string          `json:"traceparent,omitempty"`
	Model           string          `json:"model"`
	At              time.Time       `json:"at"`
	Body            json.RawMessage `json:"body,omitempty"`
	Whole           bool            `json:"whole"`        // the body came to its end
	OnConnection    int             `json:"onConnection"` // the how manieth request of its connection, from 1
	Header          http.Header     `json:"-"`
}

// Server is the fake. It is safe for concurrent use.
type Server struct {
	protocol Protocol
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

// Protocol is what a Server speaks.
type Protocol struct {
	// Serves says whether a request is one of the protocol's. Others are 404.
	Serves func(r *http.Request) bool
	// Model reads the model that a request is for.
	Model func(r *http.Request, body []byte) string
	// Check returns the answer to a request that the provider would not take, nil if it would. It goes before all scripts; nil
	// checks nothing.
	Check func(r *http.Request, body []byte) Behaviour
	// RequestID is the response header that names the request, X-Request-Id if it is empty.
	RequestID string
	// Default is the behaviour of a request that is not scripted.
	Default func(model string) Behaviour
	// Unnamed: answers have no header that names the request.
	Unnamed bool
}

// NewServer returns a server for use as an http.Handler; Configure the http.Server that runs it. It speaks ChatCompletions.
func NewServer() *Server { return NewServerOf(ChatCompletions()) }

// NewServerOf is NewServer with another protocol.
func NewServerOf(p Protocol) *Server {
	return &Server{
		protocol: p,
		byKey:    map[string]Behaviour{}, byModel: map[string]Behaviour{},
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
	return StartOf(t, ChatCompletions())
}

// StartOf is Start with another protocol.
func StartOf(t TB, p Protocol) (*Server, string) {
	t.Helper()
	s := NewServerOf(p)
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

// ChatCompletions is the protocol of compatible servers: any request's body will do.
func ChatCompletions() Protocol {
	return Protocol{
		Serves: func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions")
		},
		Model: func(_ *http.Request, body []byte) string {
			var req Request
			if json.Unmarshal(body, &req) != nil {
				return ""
			}
			return req.Model
		},
		Default: ByModelName,
	}
}

// ServeHTTP answers the protocol's requests by script, GET /log with the log as a JSON array (?key= filters), and
// POST /release with a Release.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/log" && r.Method == http.MethodGet:
		s.serveLog(w, r)
	case r.URL.Path == "/release" && r.Method == http.MethodPost:
		s.Release()
		w.WriteHeader(http.StatusNoContent)
	case s.protocol.Serves(r):
		s.serve(w, r)
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

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	e := Entry{
		Key: r.Header.Get("Idempotency-Key"), ClientRequestID: r.Header.Get("X-Client-Request-Id"),
		Traceparent: r.Header.Get("Traceparent"), At: time.Now().UTC(), Whole: err == nil,
		Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(),
	}
	if n, ok := r.Context().Value(connectionCount{}).(*atomic.Int64); ok {
		e.OnConnection = int(n.Add(1))
	}
	x := &Exchange{w: w, http: r, server: s}
	_ = json.Unmarshal(body, &x.Request) // what another protocol's requests have in common with it, if anything
	if json.Valid(body) {
		e.Body = body
	}
	e.Model = s.protocol.Model(r, body)
	b, released := s.record(&e)
	x.Entry, x.released = e, released
	if !e.Whole {
		return
	}
	if s.protocol.Check != nil {
		if refusal := s.protocol.Check(r, body); refusal != nil {
			refusal(x)
			return
		}
	}
	if b == nil {
		b = s.protocol.Default(e.Model)
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
