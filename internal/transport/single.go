package transport

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// single answers a query or a mutation with one JSON document.
func (h *Handler) single(w http.ResponseWriter, r *http.Request, params *graphql.RawParams, mediaType string) {
	ctx := r.Context()
	op, errs := h.exec.CreateOperationContext(ctx, params)
	if errs != nil {
		// The older media type says with 200 that the answer is GraphQL's, whatever it is.
		status := http.StatusOK
		if mediaType == responseType {
			status = http.StatusBadRequest
		}
		h.answer(w, mediaType, status, h.failed(ctx, op, errs))
		return
	}
	switch {
	case op.Operation.Operation == ast.Subscription:
		refuse(w, mediaType, http.StatusNotAcceptable, CodeNotAcceptable, "subscriptions need "+streamType+" or a WebSocket")
		return
	case notForGET(r, op):
		refuseMutation(w, mediaType)
		return
	}
	next, ctx := h.exec.DispatchOperation(ctx, op)
	h.answer(w, mediaType, http.StatusOK, next(ctx))
}

func notForGET(r *http.Request, op *graphql.OperationContext) bool {
	return r.Method == http.MethodGet && op.Operation.Operation == ast.Mutation
}

func refuseMutation(w http.ResponseWriter, mediaType string) {
	w.Header().Set("Allow", "POST")
	refuse(w, mediaType, http.StatusMethodNotAllowed, CodeMethodNotAllowed, "mutations need POST")
}

func refuse(w http.ResponseWriter, mediaType string, status int, code, message string) {
	writeErrors(w, mediaType, status, codedError(code, message))
}

func writeErrors(w http.ResponseWriter, mediaType string, status int, errs ...*gqlerror.Error) {
	write(w, mediaType, status, &graphql.Response{Errors: errs})
}

func write(w http.ResponseWriter, mediaType string, status int, resp *graphql.Response) {
	head(w, mediaType, status)
	_, _ = w.Write(encode(resp))
}

func head(w http.ResponseWriter, mediaType string, status int) {
	w.Header().Set("Content-Type", mediaType+"; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
}

// piece is how much of an answer a client must take in the time that a write may take.
const piece = 64 << 10

// answer is write for what may be large: a client that takes nothing of it for too long is given up.
func (h *Handler) answer(w http.ResponseWriter, mediaType string, status int, resp *graphql.Response) {
	head(w, mediaType, status)
	conn := http.NewResponseController(w)
	for text := range slices.Chunk(encode(resp), piece) {
		_ = conn.SetWriteDeadline(time.Now().Add(h.o.WriteTimeout))
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

// encode writes no data where nothing was executed, as the specification wants it.
func encode(resp *graphql.Response) []byte {
	if resp == nil { // the client is gone
		resp = &graphql.Response{Errors: gqlerror.List{codedError(codeCancelled, "the request was cancelled")}}
	}
	out := struct {
		Errors     gqlerror.List   `json:"errors,omitempty"`
		Data       json.RawMessage `json:"data,omitempty"`
		Extensions map[string]any  `json:"extensions,omitempty"`
	}{resp.Errors, resp.Data, resp.Extensions}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return text
}

func codedError(code, message string) *gqlerror.Error {
	return &gqlerror.Error{Message: message, Extensions: map[string]any{"code": code}}
}

// failed is the answer to a request that no operation came of.
func (h *Handler) failed(ctx context.Context, op *graphql.OperationContext, errs gqlerror.List) *graphql.Response {
	return h.exec.DispatchError(graphql.WithOperationContext(ctx, op), errs)
}
