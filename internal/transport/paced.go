package transport

import (
	"context"
	"errors"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// paced runs a socket's operations only as fast as their client takes what they say: gqlgen would make a response as soon
// as the one before is handed over, and hands over under a lock of the whole socket.
type paced struct {
	Executor
	s *socket
}

// CreateOperationContext is called by the reader of messages, right after it was given the operation.
func (p paced) CreateOperationContext(ctx context.Context, params *graphql.RawParams) (*graphql.OperationContext, gqlerror.List) {
	op, errs := p.Executor.CreateOperationContext(ctx, params)
	if errs == nil {
		p.s.created(op)
	}
	return op, errs
}

// DispatchOperation implements graphql.GraphExecutor.
func (p paced) DispatchOperation(ctx context.Context, op *graphql.OperationContext) (graphql.ResponseHandler, context.Context) {
	o := p.s.dispatched(op)
	ctx, n := withNumbering(ctx, 0)
	next, ctx := p.Executor.DispatchOperation(ctx, op)
	over := false
	return func(ctx context.Context) *graphql.Response {
		if over {
			return nil
		}
		if err := o.q.room(ctx, p.s.o.SlowAfter); err != nil {
			over = true
			if errors.Is(err, errSlow) {
				p.s.finish(o, errorMessage(o.client, n.slow().Errors[0]))
			}
			return nil
		}
		resp := next(ctx)
		if resp != nil {
			n.take(resp)
			over = broken(resp)
		}
		return resp
	}, ctx
}
