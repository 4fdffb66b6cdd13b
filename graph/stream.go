package graph

import (
	"context"
	"fmt"
	"iter"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/events"
	"github.com/docket-gateway/docket/internal/operation"
)

// watchable answers before the stream begins, so that a wrong id is the request's error and not a broken stream.
func (r *Resolver) watchable(ctx context.Context, jobID string) error {
	if kindOf(jobID) != jobPrefix {
		return events.ErrNotFound
	}
	switch ok, err := r.Client.Job.Query().Where(job.ID(jobID)).Exist(ctx); {
	case err != nil:
		return fmt.Errorf("read job %s: %w", jobID, err)
	case !ok:
		return events.ErrNotFound
	}
	return nil
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
