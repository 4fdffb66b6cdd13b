package transport

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// stream answers any operation with server-sent events, in the distinct connections mode of graphql-sse: an event `next`
// for each response, then `complete`.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, params *graphql.RawParams) {
	ctx, cancel := h.o.Bound(r.Context())
	defer cancel()
	op, errs := h.exec.CreateOperationContext(ctx, params)
	if errs == nil && notForGET(r, op) {
		refuseMutation(w, jsonType)
		return
	}
	w.Header().Set("Content-Type", streamType+"; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no")
	out := &eventWriter{w: w, control: http.NewResponseController(w), timeout: h.o.WriteTimeout}
	if !out.send(":\n\n") {
		return
	}
	if errs != nil {
		_ = out.next(encode(h.failed(ctx, op, errs))) && out.complete()
		return
	}
	responses := h.responses(ctx, op)
	defer func() { // nothing that runs for this request outlives it
		cancel()
		for range responses {
		}
	}()
	silence := time.NewTicker(h.o.KeepAlive)
	defer silence.Stop()
	for {
		select {
		case resp, more := <-responses:
			if e, over := ended(ctx); over { // the response tells no more than that
				out.end(e)
				return
			}
			if !more {
				if ctx.Err() == nil {
					out.complete()
				}
				return
			}
			if !out.next(resp) {
				return
			}
			silence.Reset(h.o.KeepAlive)
		case <-silence.C:
			if !out.send(":\n\n") {
				return
			}
		case <-ctx.Done():
			if e, over := ended(ctx); over {
				out.end(e)
			}
			return
		}
	}
}

// responses runs the operation beside the one goroutine that writes, which also has to keep the connection alive. They
// are text: gqlgen writes each one over the one before.
func (h *Handler) responses(ctx context.Context, op *graphql.OperationContext) <-chan []byte {
	ch := make(chan []byte)
	go func() {
		defer close(ch)
		put := func(resp *graphql.Response) bool {
			select {
			case ch <- encode(resp):
				return true
			case <-ctx.Done():
				return false
			}
		}
		defer func() {
			if value := recover(); value != nil {
				put(&graphql.Response{Errors: gqlerror.List{h.recovered(graphql.WithOperationContext(ctx, op), value)}})
			}
		}()
		next, ctx := h.exec.DispatchOperation(ctx, op)
		for {
			resp := next(ctx)
			if resp == nil || !put(resp) {
				return
			}
		}
	}()
	return ch
}

type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

func (e *eventWriter) next(resp []byte) bool {
	return e.send("event: next\ndata: " + string(resp) + "\n\n")
}

// complete has a line of data, or EventSource would not tell of it.
func (e *eventWriter) complete() bool { return e.send("event: complete\ndata:\n\n") }

// end tells why the server ends the stream.
func (e *eventWriter) end(why Ending) {
	_ = e.next(encode(&graphql.Response{Errors: gqlerror.List{codedError(why.Code(), why.Error())}})) && e.complete()
}

// send is false once the client is gone, or does not read.
func (e *eventWriter) send(text string) bool {
	// Not every ResponseWriter has deadlines; the server's own bound is all that there is then.
	_ = e.control.SetWriteDeadline(time.Now().Add(e.timeout))
	if _, err := io.WriteString(e.w, text); err != nil {
		return false
	}
	return e.control.Flush() == nil
}
