package transport

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// comment keeps a silent connection alive. It has no empty line after it: graphql-sse's client takes one that comes in one
// piece with an event for a part of that event.
const comment = ":\n"

// stream answers any operation with server-sent events, in the distinct connections mode of graphql-sse: an event `next`
// for each response, then `complete` once there is no more to ask for. A subscription that is cut off, or broke by what may
// pass, has no `complete`, so clients resume it.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, params *graphql.RawParams) {
	resume, resumed, p := resumeNumber(r)
	if p != nil {
		refuse(w, jsonType, p.status, p.code, p.message)
		return
	}
	leave, ok := h.o.enter(r.Context())
	if !ok {
		refuseStream(w)
		return
	}
	defer leave()
	ctx, cancel := h.o.Bound(r.Context())
	defer cancel()
	op, errs := h.exec.CreateOperationContext(ctx, params)
	if errs == nil && notForGET(r, op) {
		refuseMutation(w, jsonType)
		return
	}
	ctx, n := withNumbering(ctx, resume)
	q := newQueue(h.o)
	started, done := make(chan struct{}), make(chan struct{})
	if errs != nil {
		q.push(nextEvent(encode(h.failed(ctx, op, errs)), 0, false))
		q.end()
		close(started)
		close(done)
	} else {
		go func() {
			defer close(done)
			h.produce(ctx, op, n, q, started)
		}()
	}
	defer func() { // nothing that runs for this request outlives it
		cancel()
		<-done
	}()
	if resumed {
		select {
		case <-started:
		case <-ctx.Done():
			return
		}
		switch {
		case n.wrong != nil:
			writeErrors(w, jsonType, http.StatusBadRequest, n.wrong)
			return
		case n.over && r.Method == http.MethodGet:
			// Only an EventSource that connects again by itself asks like this, and it goes on for ever unless it hears this.
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	w.Header().Set("Content-Type", streamType+"; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no")
	out := &eventWriter{w: w, control: http.NewResponseController(w), timeout: h.o.WriteTimeout}
	old := make(chan struct{})
	if errs == nil && op.Operation.Operation == ast.Subscription {
		defer h.o.afterLifetime(func() { close(old) })()
	}
	if out.send([]byte(comment)) {
		h.writeEvents(ctx, out, q, old)
	}
}

// writeEvents returns when all is written, nobody reads any more, or the stream is old.
func (h *Handler) writeEvents(ctx context.Context, out *eventWriter, q *queue, old <-chan struct{}) {
	silence := time.NewTicker(h.o.KeepAlive)
	defer silence.Stop()
	for {
		text, ok, done := q.pop()
		if e, over := ended(ctx); over { // what waits tells no more than that
			out.end(e)
			return
		}
		switch {
		case ok:
			if !out.send(text) {
				return
			}
			silence.Reset(h.o.KeepAlive)
			continue
		case done:
			if ctx.Err() == nil && !q.torn {
				out.complete()
			}
			return
		}
		select {
		case <-q.filled:
		case <-silence.C:
			if !out.send([]byte(comment)) {
				return
			}
		case <-old: // without `complete`, so that the client comes back
			out.send([]byte(": the stream's lifetime is over\n"))
			return
		case <-ctx.Done():
			if e, over := ended(ctx); over {
				out.end(e)
			}
			return
		}
	}
}

// produce runs the operation beside the one goroutine that writes, which also has to keep the connection alive. started is
// closed once the resolver of a subscription has returned.
func (h *Handler) produce(ctx context.Context, op *graphql.OperationContext, n *numbering, q *queue, started chan<- struct{}) {
	defer q.end()
	put := func(resp *graphql.Response) {
		if op.Operation.Operation == ast.Subscription && passing(resp) {
			q.torn = true
		}
		number, numbered := n.take(resp)
		// Text, since gqlgen writes each response over the one before.
		q.push(nextEvent(encode(resp), number, numbered))
	}
	begun := false
	begin := func() {
		if !begun {
			begun = true
			close(started)
		}
	}
	defer begin()
	defer func() {
		if value := recover(); value != nil {
			put(&graphql.Response{Errors: gqlerror.List{h.recovered(graphql.WithOperationContext(ctx, op), value)}})
		}
	}()
	next, ctx := h.exec.DispatchOperation(ctx, op)
	begin()
	for {
		if err := q.room(ctx, h.o.SlowAfter); err != nil {
			if errors.Is(err, errSlow) {
				put(n.slow())
			}
			return
		}
		resp := next(ctx)
		if resp == nil {
			return
		}
		put(resp)
		if broken(resp) {
			return
		}
	}
}

// nextEvent has an id if the response is numbered.
func nextEvent(resp []byte, number int, numbered bool) []byte {
	text := make([]byte, 0, len(resp)+40)
	text = append(text, "event: next\n"...)
	if numbered {
		text = append(text, "id: "...)
		text = strconv.AppendInt(text, int64(number), 10)
		text = append(text, '\n')
	}
	text = append(text, "data: "...)
	text = append(text, resp...)
	return append(text, "\n\n"...)
}

type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// complete has a line of data, or EventSource would not tell of it.
func (e *eventWriter) complete() bool { return e.send([]byte("event: complete\ndata:\n\n")) }

// end tells whom it may concern why the server ends the stream. To the client it is a broken connection, which it makes anew
// with what credentials it has then, and if they are no better the answer to that says so. An error in an event would be the
// operation's.
func (e *eventWriter) end(why Ending) { e.send([]byte(": " + why.Code() + "\n")) }

// send is false once the client is gone, or does not read.
func (e *eventWriter) send(text []byte) bool {
	// Not every ResponseWriter has deadlines; the server's own bound is all that there is then.
	_ = e.control.SetWriteDeadline(time.Now().Add(e.timeout))
	if _, err := e.w.Write(text); err != nil {
		return false
	}
	return e.control.Flush() == nil
}
