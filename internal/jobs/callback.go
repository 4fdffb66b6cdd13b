package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/store"
)

// Completion is a job's arrival at SUCCEEDED, FAILED or CANCELLED. A FAILED job that is re-opened arrives once more.
type Completion struct {
	JobID          string
	IdempotencyKey string
	State          job.State
	Version        int // of the job, after the change
	Event          int // number of the job's event that says so; no two completions of a job share one
	At             time.Time
	CallbackURL    string
}

// Callbacks tell whoever asked for it that a job is over.
type Callbacks interface {
	// CheckURL says in a sentence for the client why a callback URL is not taken, nil if it is.
	CheckURL(raw string) error
	// Enqueue takes the completion inside the transaction that brought it: either both are kept or none is.
	Enqueue(ctx context.Context, tx *store.Tx, c Completion) error
}

// noCallbacks takes no callback URL.
type noCallbacks struct{}

func (noCallbacks) CheckURL(string) error {
	return errors.New("completion webhooks are not configured here")
}

func (noCallbacks) Enqueue(_ context.Context, _ *store.Tx, c Completion) error {
	return fmt.Errorf("jobs: nobody delivers the completion of job %s", c.JobID)
}

// announce hands the job's end, if this change brought it, to the callbacks.
func (c *change) announce() error {
	if c.end == nil || c.job.CallbackURL == nil {
		return nil
	}
	number, _ := c.end.Number()
	at, _ := c.end.At()
	err := c.s.callbacks.Enqueue(c.ctx, c.tx, Completion{
		JobID: c.job.ID, IdempotencyKey: c.job.IdempotencyKey, State: c.state, Version: c.job.Version, Event: number, At: at,
		CallbackURL: *c.job.CallbackURL,
	})
	if err != nil {
		return fmt.Errorf("announce the end of job %s: %w", c.job.ID, err)
	}
	return nil
}
