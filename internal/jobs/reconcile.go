package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Bounds on what is done about an UNKNOWN attempt.
const (
	// maxResends is how often a request is sent again. After that the attempt waits for a person or another way out.
	maxResends = 5
	// resendWithin is how long after the first request it may be sent again: providers forget keys, many after a day.
	resendWithin = 12 * time.Hour
)

// Waits between questions about one attempt, doubling.
const (
	askBase = 5 * time.Second
	askCap  = 5 * time.Minute
)

// Question is one way in which a provider may be asked what became of its UNKNOWN attempts.
type Question struct {
	Targets []string // of one provider, that this process can send to
	// Resend sends the request again under the same key, which only a provider may be asked that is declared idempotent.
	// Otherwise the provider is asked by the request's handle, which has no effects.
	Resend bool
	// SentTo is the endpoint that a re-send goes to. What was sent to another is left alone, since this one would not know
	// its key and run it a second time.
	SentTo string
	// SkipHandles leaves attempts that have a handle alone: they are asked about by it.
	SkipHandles bool
	// Takes bounds how long one question can be under way: a request with its linger. Nobody else asks meanwhile, and an
	// attempt whose worker was lost is not sent again before the lost worker must have stopped listening.
	Takes time.Duration
}

// Asked is a question that was committed, and is to be put to the provider.
type Asked struct {
	Attempt *ent.Attempt
	Job     *ent.Job
	Task    *tasks.Definition
	Number  int // of questions about this attempt, from 1
}

// Unanswered returns attempts that the question is due for, at most limit, those that waited longest first.
func (s *Service) Unanswered(ctx context.Context, q Question, limit int) ([]string, error) {
	ids, err := s.store.Client().Attempt.Query().Where(s.due(q)).
		Order(attempt.ByAskAt(entsql.OrderNullsFirst()), ent.Asc(attempt.FieldID)).Limit(limit).
		IDs(viewer.NewSystemContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("find attempts to ask about: %w", err)
	}
	return ids, nil
}

// Ask commits that the question is about to be put. Of any number of processes one gets it, the others ErrNotYours. Any
// other error leaves open whether it was committed, and nothing may be sent. A fallback is re-sent only while the gate
// allows it.
func (s *Service) Ask(ctx context.Context, q Question, attemptID string) (*Asked, error) {
	sys := viewer.NewSystemContext(ctx)
	by, _ := viewer.FromContext(sys)
	a, err := s.withJob(ctx, attemptID)
	if err != nil {
		return nil, err
	}
	task, err := s.version(sys, s.store.Client(), a.Edges.Job.TaskVersion)
	if err != nil {
		return nil, err
	}
	if q.Resend && a.Target != a.Edges.Job.Target {
		d, err := s.allowed(sys, s.store.Client(), task, a.Target)
		if err != nil {
			return nil, err
		}
		if !d.Allowed {
			return nil, errors.Join(ErrNotYours, s.askLater(sys, a.ID, a.Asked, askCap))
		}
	}
	out := &Asked{Job: a.Edges.Job, Task: task}
	err = s.change(sys, by, a.JobID, func(c *change) error {
		now, err := c.find(attemptID)
		if err != nil {
			return err
		}
		n, err := c.tx.Attempt.Update().Where(attempt.ID(attemptID), s.due(q)).
			AddAsked(1).Modify(func(u *entsql.UpdateBuilder) {
			u.Set(attempt.FieldAskAt, entsql.Raw(s.store.Now(q.Takes+s.askWait(now.Asked))))
			if q.Resend {
				u.Set(attempt.FieldResentAt, entsql.Raw(s.store.Now(0)))
			}
		}).Save(sys)
		if err != nil {
			return fmt.Errorf("ask about attempt %s: %w", attemptID, err)
		}
		if n != 1 {
			return errLost
		}
		out.Attempt, out.Number = now, now.Asked+1
		if q.Resend {
			c.event(EventAttemptResent, attemptID, "", "", detail{"number": out.Number})
		}
		return nil
	})
	if errors.Is(err, errLost) {
		err = ErrNotYours
	}
	if err != nil {
		return nil, fmt.Errorf("ask about attempt %s: %w", attemptID, err)
	}
	return out, nil
}

// Unsettled records that a question brought nothing: it may be put again after its back-off, by anybody. An attempt that
// was settled or asked about since stays as it is.
func (s *Service) Unsettled(ctx context.Context, q *Asked) error {
	return s.askLater(viewer.NewSystemContext(ctx), q.Attempt.ID, q.Number, s.askWait(q.Number-1))
}

func (s *Service) askLater(sys context.Context, attemptID string, number int, wait time.Duration) error {
	n, err := s.store.Client().Attempt.Update().
		Where(attempt.ID(attemptID), attempt.StateEQ(attempt.StateUNKNOWN), attempt.Asked(number)).
		Modify(func(u *entsql.UpdateBuilder) { u.Set(attempt.FieldAskAt, entsql.Raw(s.store.Now(wait))) }).Save(sys)
	if err != nil {
		return fmt.Errorf("put off asking about attempt %s: %w", attemptID, err)
	}
	if n == 0 {
		s.log.LogAttrs(sys, slog.LevelDebug, "settled while the provider was asked", slog.String("attempt", attemptID))
	}
	return nil
}

// due finds the attempts that a question may be put about now.
func (s *Service) due(q Question) predicate.Attempt {
	ps := []predicate.Attempt{attempt.StateEQ(attempt.StateUNKNOWN), attempt.TargetIn(q.Targets...)}
	later := s.passed(attempt.FieldAskAt, 0)
	if !q.Resend {
		// The first question need not wait until nobody listens: it has no effects.
		return attempt.And(append(ps, attempt.ProviderHandleNotNil(), attempt.Or(attempt.Asked(0), later))...)
	}
	if q.SkipHandles {
		ps = append(ps, attempt.ProviderHandleIsNil())
	}
	return attempt.And(append(ps, attempt.SentTo(q.SentTo), attempt.AskedLT(maxResends), attempt.Not(s.passed(attempt.FieldSentAt, resendWithin)),
		attempt.Or(later, attempt.And(attempt.AskAtIsNil(), s.passed(attempt.FieldSentAt, q.Takes))))...)
}

// passed finds attempts whose time in that column was longer than d ago, by the database's clock.
func (s *Service) passed(column string, d time.Duration) predicate.Attempt {
	return func(sel *entsql.Selector) {
		sel.Where(entsql.ExprP(sel.C(column) + " < " + s.store.Now(-d)))
	}
}

// askWait is the back-off after a question that is the asked+1st.
func (s *Service) askWait(asked int) time.Duration {
	return backoff(tasks.RetryPolicy{Base: askBase, Cap: askCap}, asked, s.jitter())
}

// askAfter lets questions wait until a worker has stopped listening.
func (s *Service) askAfter(listens time.Duration) func(*ent.AttemptUpdate) {
	return func(u *ent.AttemptUpdate) {
		u.Modify(func(u *entsql.UpdateBuilder) { u.Set(attempt.FieldAskAt, entsql.Raw(s.store.Now(listens))) })
	}
}
