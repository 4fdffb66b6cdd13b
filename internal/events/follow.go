package events

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/jobevent"
)

// ErrNotFound means that there is no such job, or the viewer may not see it.
var ErrNotFound = errors.New("no such job")

// BeyondError means that events were asked for after a number that the job's log does not have, as after a database was
// restored from a backup: what it will have under that number is not what the reader knows.
type BeyondError struct{ Last int } // the number of the job's last event

func (e *BeyondError) Error() string {
	return fmt.Sprintf("the job's last event is number %d", e.Last)
}

// DefaultBatch is a Follower's.
const DefaultBatch = 100

// Follower reads jobs' events as they are committed. What its hub is not told of it finds by the hub's Poll.
type Follower struct {
	Client *ent.Client
	Hub    *Hub
	Batch  int // events read at a time; a slow reader holds no more in memory [100]
}

// Events yields the job's events after number `after`, in order of number, without gap or duplicate: what is committed
// already, then what is committed later. It ends without an error once every event that was committed is delivered and
// the job, read in one row with the number of its last event, is SUCCEEDED, FAILED or CANCELLED. Otherwise it ends with
// one error: ErrNotFound, a *BeyondError, the context's or the database's. It reads under ctx's viewer, and only as fast as it is asked.
func (f *Follower) Events(ctx context.Context, jobID string, after int) iter.Seq2[*ent.JobEvent, error] {
	return func(yield func(*ent.JobEvent, error) bool) {
		watch := f.Hub.Watch(jobID)
		defer watch.Stop()
		for cursor := after; ; {
			// The row tells the state and the last event of one moment; events up to that number are all visible,
			// since they are numbered under the row's lock.
			j, err := f.head(ctx, jobID)
			if err != nil {
				yield(nil, err)
				return
			}
			if cursor > j.LastEvent {
				yield(nil, &BeyondError{Last: j.LastEvent})
				return
			}
			for cursor < j.LastEvent {
				batch, err := f.read(ctx, jobID, cursor, j.LastEvent)
				if err != nil {
					yield(nil, f.orGone(ctx, jobID, err))
					return
				}
				for _, e := range batch {
					if !yield(e, nil) {
						return
					}
				}
				cursor = batch[len(batch)-1].Number
			}
			if Final(j.State) {
				return
			}
			watch.Saw(j.LastEvent)
			select {
			case <-watch.Changed:
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
		}
	}
}

// Final reports whether a job of that state ends its followers.
func Final(s job.State) bool {
	return s == job.StateSUCCEEDED || s == job.StateFAILED || s == job.StateCANCELLED
}

func (f *Follower) head(ctx context.Context, jobID string) (*ent.Job, error) {
	j, err := f.Client.Job.Query().Where(job.ID(jobID)).Select(job.FieldState, job.FieldLastEvent).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read job %s: %w", jobID, err)
	}
	return j, nil
}

// orGone tells why something of a job is missing: ErrNotFound if retention has removed all of it in the meantime.
func (f *Follower) orGone(ctx context.Context, jobID string, err error) error {
	if _, gone := f.head(ctx, jobID); errors.Is(gone, ErrNotFound) {
		return gone
	}
	return err
}

// read returns at least one event. A hole in the numbers is an error: it cannot happen, and going on would hide it.
func (f *Follower) read(ctx context.Context, jobID string, after, last int) ([]*ent.JobEvent, error) {
	size := f.Batch
	if size <= 0 {
		size = DefaultBatch
	}
	batch, err := f.Client.JobEvent.Query().
		Where(jobevent.JobID(jobID), jobevent.NumberGT(after), jobevent.NumberLTE(last)).
		Order(jobevent.ByNumber()).Limit(size).WithAttempt().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read events of job %s: %w", jobID, err)
	}
	if len(batch) == 0 {
		return nil, fmt.Errorf("job %s: events %d to %d are missing", jobID, after+1, last)
	}
	for i, e := range batch {
		if e.Number != after+1+i {
			return nil, fmt.Errorf("job %s: event %d is missing", jobID, after+1+i)
		}
	}
	return batch, nil
}
