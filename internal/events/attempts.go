package events

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/jobevent"
)

// Attempts yields the state of each of the job's attempts, in order of number, then every change of one, each as of its
// own event, so that two quick changes are two attempts and never one. It ends as Events does.
func (f *Follower) Attempts(ctx context.Context, jobID string) iter.Seq2[*ent.Attempt, error] {
	return func(yield func(*ent.Attempt, error) bool) {
		// Subscribing before the snapshot is not needed: Events looks at once, from the snapshot's number on.
		now, at, err := f.snapshot(ctx, jobID)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, a := range now {
			if !yield(a, nil) {
				return
			}
		}
		for e, err := range f.Events(ctx, jobID, at) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !changesAttempt(e) {
				continue
			}
			a, err := e.Edges.AttemptOrErr()
			if err != nil {
				yield(nil, f.orGone(ctx, jobID, fmt.Errorf("attempt of event %d of job %s: %w", e.Number, jobID, err)))
				return
			}
			if !yield(asOf(a, e), nil) {
				return
			}
		}
	}
}

// snapshot returns the attempts as they were when the job's last event was number at. The rows are read later than that
// number and may be ahead of it, so each is taken back to its last event within it.
func (f *Follower) snapshot(ctx context.Context, jobID string) (attempts []*ent.Attempt, at int, err error) {
	j, err := f.head(ctx, jobID)
	if err != nil {
		return nil, 0, err
	}
	changes, err := f.Client.JobEvent.Query().
		Where(jobevent.JobID(jobID), jobevent.NumberLTE(j.LastEvent), jobevent.AttemptIDNotNil(), jobevent.ToNotNil()).
		Order(jobevent.ByNumber()).All(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read events of job %s: %w", jobID, err)
	}
	last := map[string]*ent.JobEvent{}
	for _, e := range changes {
		last[*e.AttemptID] = e
	}
	rows, err := f.Client.Attempt.Query().Where(attempt.JobID(jobID)).Order(attempt.ByNumber()).All(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("read attempts of job %s: %w", jobID, err)
	}
	for _, row := range rows {
		if e := last[row.ID]; e != nil {
			attempts = append(attempts, asOf(row, e))
		}
	}
	return attempts, j.LastEvent, nil
}

func changesAttempt(e *ent.JobEvent) bool { return e.AttemptID != nil && e.To != nil }

// asOf returns the attempt as it was right after e: row may be ahead. Nothing leaves a terminal state, so a row that is
// not ahead is right as it is.
func asOf(row *ent.Attempt, e *ent.JobEvent) *ent.Attempt {
	a := *row
	state := attempt.State(*e.To)
	if row.State == state {
		return &a
	}
	a.State = state
	a.FinishedAt = nil
	a.InputTokens, a.CachedInputTokens, a.OutputTokens, a.Cost, a.Currency = nil, nil, nil, nil, nil
	a.ErrorCode, a.ErrorMessage, a.ErrorRetryable, a.ErrorRetryAfterMs = nil, nil, nil, nil
	if state == attempt.StateSTARTING {
		a.AcknowledgedAt, a.ProviderRequestID = nil, nil
		if a.SentAt != nil && a.SentAt.After(e.At) {
			a.SentAt = nil
		}
	}
	if state == attempt.StateUNKNOWN {
		tellError(&a, e.Detail)
	}
	return &a
}

func tellError(a *ent.Attempt, detail json.RawMessage) {
	var d struct {
		Code         *string `json:"code"`
		Message      *string `json:"message"`
		Retryable    *bool   `json:"retryable"`
		RetryAfterMs *int    `json:"retryAfterMs"`
	}
	if len(detail) == 0 || json.Unmarshal(detail, &d) != nil {
		return
	}
	a.ErrorCode, a.ErrorMessage, a.ErrorRetryable, a.ErrorRetryAfterMs = d.Code, d.Message, d.Retryable, d.RetryAfterMs
}
