// Package transport carries GraphQL requests over HTTP, server-sent events and WebSocket: the wire protocols and nothing
// of what they carry. Whatever comes in is checked on its raw bytes before any decoder sees it, and no error repeats it.
//
// It imports internal/canonical and nothing else of this module.
package transport

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Codes of requests that no operation could be made of, in extensions.code.
const (
	CodeBadRequest           = "BAD_REQUEST"
	CodeBodyTooLarge         = "BODY_TOO_LARGE"
	CodeBodyTimeout          = "BODY_TIMEOUT"
	CodeForbidden            = "FORBIDDEN"
	CodeInvalidJSON          = "INVALID_JSON"
	CodeMethodNotAllowed     = "METHOD_NOT_ALLOWED"
	CodeNotAcceptable        = "NOT_ACCEPTABLE"
	CodeRateLimited          = "RATE_LIMITED"        // of one client
	CodeSlowConsumer         = "SLOW_CONSUMER"       // the end of a stream; extensions.resumeAfter is the number to go on after
	CodeTooManyOperations    = "TOO_MANY_OPERATIONS" // on one socket
	CodeTooManySockets       = "TOO_MANY_SOCKETS"    // and event streams, of one client
	CodeUnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
)

// Codes that the executor gives as well.
const (
	codeCancelled = "CANCELLED"
	codeInternal  = "INTERNAL"
)

// Executor runs what comes in.
type Executor interface {
	graphql.GraphExecutor
	PresentRecoveredError(ctx context.Context, value any) error
}

// Options of a Handler. Zero values mean the defaults in brackets.
type Options struct {
	// Init authenticates a WebSocket by the payload of its connection_init; ctx is the handshake's. An error closes the
	// socket with 4403, or with its own code, see Ending. So does the end of the context that it returns. Required.
	Init func(ctx context.Context, payload map[string]any) (context.Context, error)
	// Bound returns the context of an event stream, whose end ends the stream, with a word if its cause is an Ending
	// [the request's].
	Bound func(ctx context.Context) (context.Context, context.CancelFunc)
	// CheckOrigin refuses handshakes that browsers make for other sites. Required.
	CheckOrigin func(*http.Request) bool

	Limiter       Limiter       // nil: none
	Lifetime      time.Duration // a socket or stream of a subscription is ended at this age, or up to a tenth before; 0: never
	BodyLimit     int64         // bytes of a request's body and of a WebSocket message [1 MiB]
	InitTimeout   time.Duration // from the handshake to connection_init [5s]
	PingInterval  time.Duration // between pings of a WebSocket; without a pong for two of them it is closed [20s]
	KeepAlive     time.Duration // between comments on a silent event stream [15s]
	WriteTimeout  time.Duration // for one message to a client that does not read [30s]
	MaxOperations int           // at once on one WebSocket [100]

	// What one operation's client has not taken yet: no more is made while there are so many messages or bytes of it. If
	// none of them is taken for SlowAfter, the operation ends with CodeSlowConsumer.
	Backlog      int           // messages [64]
	BacklogBytes int           // [64 KiB]
	SlowAfter    time.Duration // [5s]

	Logger *slog.Logger // [slog.Default()]
}

func (o Options) withDefaults() Options {
	if o.BodyLimit == 0 {
		o.BodyLimit = 1 << 20
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&o.InitTimeout, 5 * time.Second}, {&o.PingInterval, 20 * time.Second}, {&o.KeepAlive, 15 * time.Second},
		{&o.WriteTimeout, 30 * time.Second}, {&o.SlowAfter, 5 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if o.Bound == nil {
		o.Bound = context.WithCancel
	}
	if o.MaxOperations == 0 {
		o.MaxOperations = 100
	}
	if o.Backlog == 0 {
		o.Backlog = 64
	}
	if o.BacklogBytes == 0 {
		o.BacklogBytes = 64 << 10
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Handler serves one GraphQL endpoint. Requests come to it authenticated, but for WebSocket handshakes, see Options.Init.
type Handler struct {
	exec    Executor
	o       Options
	sockets sync.WaitGroup // and all that they have running
}

// New returns the handler of an endpoint.
func New(exec Executor, o Options) *Handler { return &Handler{exec: exec, o: o.withDefaults()} }

// Wait returns once every WebSocket has ended, closing handshakes included, or with ctx's error. A server that shuts down
// does not wait for them by itself. It is to be called when no more come in, after their contexts were cancelled.
func (h *Handler) Wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		h.sockets.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() { //nolint:contextcheck // the request's own, below
		value := recover()
		if value == nil {
			return
		}
		if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(value)
		}
		writeErrors(w, jsonType, http.StatusInternalServerError, h.recovered(r.Context(), value))
	}()
	r = r.WithContext(graphql.StartOperationTrace(r.Context()))
	switch {
	case isWebSocket(r):
		h.webSocket(w, r)
	case r.Method == http.MethodPost, r.Method == http.MethodGet:
		h.overHTTP(w, r)
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", "OPTIONS, GET, POST")
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "OPTIONS, GET, POST")
		refuse(w, jsonType, http.StatusMethodNotAllowed, CodeMethodNotAllowed, "use GET or POST")
	}
}

func (h *Handler) overHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Add("Vary", "Accept")
	answer, ok := negotiate(r.Header.Values("Accept"))
	errorType := answer
	if answer != responseType {
		errorType = jsonType
	}
	if wait := h.o.take(r.Context()); wait > 0 { // first of all, since every request counts
		refuseRate(w, r, errorType, wait, h.o.BodyLimit)
		return
	}
	if !ok {
		refuse(w, jsonType, http.StatusNotAcceptable, CodeNotAcceptable,
			"answers are "+jsonType+", "+responseType+" or "+streamType)
		return
	}
	params, problem := h.params(w, r)
	if problem != nil {
		refuse(w, errorType, problem.status, problem.code, problem.message)
		return
	}
	if answer == streamType {
		h.stream(w, r, params)
		return
	}
	h.single(w, r, params, answer)
}

func (h *Handler) recovered(ctx context.Context, value any) *gqlerror.Error {
	var presented *gqlerror.Error
	if errors.As(h.exec.PresentRecoveredError(ctx, value), &presented) {
		return presented
	}
	return codedError(codeInternal, "internal error")
}

func isWebSocket(r *http.Request) bool {
	for _, field := range r.Header.Values("Upgrade") {
		for protocol := range strings.SplitSeq(field, ",") {
			if strings.EqualFold(strings.TrimSpace(protocol), "websocket") {
				return r.Method == http.MethodGet
			}
		}
	}
	return false
}
