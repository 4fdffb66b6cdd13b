package transport

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Limiter bounds what one client may do over all its requests. The context is that of an authenticated request or socket.
type Limiter interface {
	// Take counts one operation, whatever becomes of it. It returns 0 if it may run, else how long until one may.
	Take(ctx context.Context) (wait time.Duration)
	// Enter counts an open socket or event stream until leave is called. ok is false, and leave nil, if there are too many.
	Enter(ctx context.Context) (leave func(), ok bool)
}

func (o Options) take(ctx context.Context) time.Duration {
	if o.Limiter == nil {
		return 0
	}
	return o.Limiter.Take(ctx)
}

func (o Options) enter(ctx context.Context) (leave func(), ok bool) {
	if o.Limiter == nil {
		return func() {}, true
	}
	return o.Limiter.Enter(ctx)
}

// afterLifetime calls end when a connection is old enough. Ages differ by up to a tenth: those that began together, when a
// process was replaced, shall not all come back together.
func (o Options) afterLifetime(end func()) (stop func()) {
	if o.Lifetime <= 0 {
		return func() {}
	}
	earlier := rand.N(o.Lifetime/10 + 1) //nolint:gosec // it spreads load and guards nothing
	timer := time.AfterFunc(o.Lifetime-earlier, end)
	return func() { timer.Stop() }
}

func rateLimited(wait time.Duration) *gqlerror.Error {
	err := codedError(CodeRateLimited, "too many requests; wait before the next one")
	err.Extensions["retryAfterMs"] = max(wait.Milliseconds(), 1)
	return err
}

// refuseRate reads what it refuses, up to the limit of a body, so that the client hears why.
func refuseRate(w http.ResponseWriter, r *http.Request, mediaType string, wait time.Duration, bodyLimit int64) {
	_, _ = io.CopyN(io.Discard, r.Body, bodyLimit)
	w.Header().Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	writeErrors(w, mediaType, http.StatusTooManyRequests, rateLimited(wait))
}

func refuseStream(w http.ResponseWriter) {
	refuse(w, jsonType, http.StatusTooManyRequests, CodeTooManySockets, tooManySockets)
}

const tooManySockets = "too many sockets and event streams are open; end one first"
