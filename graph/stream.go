package graph

import (
	"context"
	"fmt"
	"iter"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/events"
	"github.com/docket-gateway/docket/internal/operation"
	"github.com/docket-gateway/docket/internal/transport"
)

// watchable answers before the stream begins, so that a wrong id is the request's error and not a broken stream. j has its
// state and the number of its last event.
func (r *Resolver) watchable(ctx context.Context, jobID string) (j *ent.Job, err error) {
	if kindOf(jobID) != jobPrefix {
		return nil, events.ErrNotFound
	}
	j, err = r.Client.Job.Query().Where(job.ID(jobID)).Select(job.FieldState, job.FieldLastEvent).Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return nil, events.ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("read job %s: %w", jobID, err)
	}
	return j, nil
}

// numbered tells the transport each event's number just before the stream has it.
func numbered(ctx context.Context, all iter.Seq2[*ent.JobEvent, error]) iter.Seq2[*ent.JobEvent, error] {
	return func(yield func(*ent.JobEvent, error) bool) {
		for e, err := range all {
			if err == nil {
				transport.Announce(ctx, e.Number)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// stream hands over one element at a time: what the client has not taken yet waits in the database, not here. An error
// ends the stream and is told to the client.
func stream[T *ent.Attempt | *ent.JobEvent](ctx context.Context, all iter.Seq2[T, error]) <-chan T {
	ch := make(chan T)
	go func() {
		defer close(ch)
		defer func() { // gqlgen recovers its own goroutines only
			if value := recover(); value != nil {
				operation.FailStream(ctx, &panicError{value: value})
			}
		}()
		for v, err := range all {
			if err != nil {
				operation.FailStream(ctx, &resolverError{err: err})
				return
			}
			select {
			case ch <- v:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ch
}
