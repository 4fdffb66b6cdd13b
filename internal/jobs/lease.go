package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/viewer"
)

// ErrNotYours means that a worker may not, or may no longer, work on an attempt: it was settled, cancelled, sent before,
// taken by another worker or belongs to another queue entry.
var ErrNotYours = errors.New("jobs: the attempt is not this worker's")

// Lease is a worker's hold on an attempt. It ends by itself when the worker gives no sign of life.
type Lease struct {
	Token   string
	Attempt *ent.Attempt
	Job     *ent.Job
	Task    *tasks.Definition
	SentTo  string // set by the worker before MarkSent: the endpoint that will know the attempt's key
}

// Take leases an attempt for the worker of a queue entry. It returns ErrNotYours if there is nothing to do for it.
func (s *Service) Take(ctx context.Context, attemptID string, entry int64) (*Lease, error) {
	sys := viewer.NewSystemContext(ctx)
	token := newID("lease")
	n, err := s.store.Client().Attempt.Update().
		Where(attempt.ID(attemptID), attempt.StateEQ(attempt.StateSTARTING), attempt.SentAtIsNil(), attempt.QueueEntry(entry),
			attempt.Or(attempt.LeaseTokenIsNil(), s.leaseExpired())).
		SetLeaseToken(token).Modify(s.renewLease).Save(sys)
	if err != nil {
		return nil, fmt.Errorf("take attempt %s: %w", attemptID, err)
	}
	if n != 1 {
		return nil, fmt.Errorf("take attempt %s: %w", attemptID, ErrNotYours)
	}
	a, err := s.withJob(sys, attemptID)
	if err != nil {
		return nil, err
	}
	task, err := s.version(sys, s.store.Client(), a.Edges.Job.TaskVersion)
	if err != nil {
		return nil, err
	}
	return &Lease{Token: token, Attempt: a, Job: a.Edges.Job, Task: task}, nil
}

// MarkSent commits that the request is about to be sent. Only after it returned nil may the worker dial, and no other
// worker ever will. The gate is asked once more, with this process's configuration: a refusal settles the attempt as
// FAILED and is ErrNotYours. Any other error leaves open whether the mark was written, and nothing may be sent.
func (s *Service) MarkSent(ctx context.Context, l *Lease) error {
	if l.Attempt.Target != l.Job.Target {
		d, err := s.allowed(ctx, s.store.Client(), l.Task, l.Attempt.Target)
		if err != nil {
			return err
		}
		if !d.Allowed {
			f := Failure{Code: CodeContractNotPassed, Message: "The gate closed before the request was sent."}
			if len(d.Reasons) > 0 {
				f.Message += " " + d.Reasons[0]
			}
			if err := s.Refuse(ctx, l, f); err != nil {
				return err
			}
			return fmt.Errorf("send attempt %s: the gate is closed: %w", l.Attempt.ID, ErrNotYours)
		}
	}
	n, err := s.store.Client().Attempt.Update().
		Where(attempt.ID(l.Attempt.ID), attempt.StateEQ(attempt.StateSTARTING), attempt.SentAtIsNil(), attempt.LeaseToken(l.Token)).
		SetSentTo(l.SentTo).
		Modify(func(u *entsql.UpdateBuilder) { u.Set(attempt.FieldSentAt, entsql.Raw(s.store.Now(0))) }, s.renewLease).
		Save(viewer.NewSystemContext(ctx))
	if err != nil {
		return fmt.Errorf("mark attempt %s as sent: %w", l.Attempt.ID, err)
	}
	if n != 1 {
		return fmt.Errorf("mark attempt %s as sent: %w", l.Attempt.ID, ErrNotYours)
	}
	return nil
}

// Refuse settles an attempt as FAILED that this worker cannot send, before MarkSent. It returns ErrNotYours, and changes
// nothing, if the attempt was sent or is another worker's by now.
func (s *Service) Refuse(ctx context.Context, l *Lease, f Failure) error {
	sys := viewer.NewSystemContext(ctx)
	by, _ := viewer.FromContext(sys)
	err := s.change(sys, by, l.Job.ID, func(c *change) error {
		return c.failed(l.Attempt.ID, Outcome{Failure: f.clean()}, nil, attempt.SentAtIsNil(), attempt.LeaseToken(l.Token))
	})
	if errors.Is(err, errLost) {
		err = ErrNotYours
	}
	return wrap(err, "refuse attempt "+l.Attempt.ID)
}

// Beat renews the lease. It returns ErrNotYours once the attempt is not the worker's any more.
func (s *Service) Beat(ctx context.Context, l *Lease) error {
	n, err := s.store.Client().Attempt.Update().
		Where(attempt.ID(l.Attempt.ID), attempt.LeaseToken(l.Token), attempt.StateIn(attempt.StateSTARTING, attempt.StateRUNNING)).
		Modify(s.renewLease).Save(viewer.NewSystemContext(ctx))
	if err != nil {
		return fmt.Errorf("renew the lease of attempt %s: %w", l.Attempt.ID, err)
	}
	if n != 1 {
		return fmt.Errorf("renew the lease of attempt %s: %w", l.Attempt.ID, ErrNotYours)
	}
	return nil
}

// Open reports whether something may still come of the attempt: a worker that lingers stops once it is not.
func (s *Service) Open(ctx context.Context, attemptID string) (bool, error) {
	ok, err := s.store.Client().Attempt.Query().Where(attempt.ID(attemptID), attempt.StateIn(openStates...)).
		Exist(viewer.NewSystemContext(ctx))
	if err != nil {
		return false, fmt.Errorf("read attempt %s: %w", attemptID, err)
	}
	return ok, nil
}

// Acknowledge records that the provider took the request. An attempt that is not STARTING any more stays as it is, but for the
// handle, which [Service.KeepHandle] keeps.
func (s *Service) Acknowledge(ctx context.Context, l *Lease, providerRequestID, handle string) error {
	sys := viewer.NewSystemContext(ctx)
	by, _ := viewer.FromContext(sys)
	err := s.change(sys, by, l.Job.ID, func(c *change) error {
		a, err := c.find(l.Attempt.ID)
		if err != nil {
			return err
		}
		err = c.move(a, attempt.StateRUNNING, nil, func(u *ent.AttemptUpdate) {
			u.SetAcknowledgedAt(s.now())
			if providerRequestID != "" {
				u.SetProviderRequestID(clean(providerRequestID, maxForeign))
			}
			if handle != "" {
				u.SetProviderHandle(clean(handle, maxForeign))
			}
		})
		if err != nil {
			return err
		}
		st, _ := whileOpen(c.attempts)
		c.becomes(st, false, nil)
		return nil
	})
	if errors.Is(err, errLost) { // swept, or given up, while the provider was slow to answer
		return s.KeepHandle(ctx, l.Attempt.ID, providerRequestID, handle)
	}
	return err
}

func (s *Service) renewLease(u *entsql.UpdateBuilder) {
	u.Set(attempt.FieldLeaseExpiresAt, entsql.Raw(s.store.Now(s.lease)))
}

// leaseExpired compares by the database's clock.
func (s *Service) leaseExpired() predicate.Attempt {
	return func(sel *entsql.Selector) {
		sel.Where(entsql.ExprP(sel.C(attempt.FieldLeaseExpiresAt) + " < " + s.store.Now(0)))
	}
}

// dueBefore finds attempts that have been due for longer than d, by the database's clock.
func (s *Service) dueBefore(d time.Duration) predicate.Attempt {
	return func(sel *entsql.Selector) {
		sel.Where(entsql.ExprP(sel.C(attempt.FieldDueAt) + " < " + s.store.Now(-d)))
	}
}
