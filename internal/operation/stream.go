package operation

import (
	"context"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

type streamKey struct{}

// streamError is how a stream ended, if not well. gqlgen has no way to tell that: a channel that a resolver closes reads
// as the stream's good end.
type streamError struct {
	mu  sync.Mutex
	err error
}

// FailStream ends the operation's stream with err. Call it before closing the resolver's channel; only the first error
// counts.
func FailStream(ctx context.Context, err error) {
	s, ok := ctx.Value(streamKey{}).(*streamError)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// take returns the error once.
func (s *streamError) take() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.err
	s.err = nil
	return err
}

// DispatchOperation implements graphql.GraphExecutor. A stream that FailStream was called for ends with one response
// that has errors and no data.
func (e *Executor) DispatchOperation(ctx context.Context, op *graphql.OperationContext) (graphql.ResponseHandler, context.Context) {
	failed := &streamError{}
	next, ctx := e.Executor.DispatchOperation(context.WithValue(ctx, streamKey{}, failed), op)
	return func(ctx context.Context) *graphql.Response {
		if resp := next(ctx); resp != nil {
			return resp
		}
		if err := failed.take(); err != nil && ctx.Err() == nil {
			return &graphql.Response{Errors: gqlerror.List{e.options.ErrorPresenter(ctx, err)}}
		}
		return nil
	}, ctx
}
