package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/viewer"
)

// sweepBatch is how many attempts a sweep reads at a time.
const sweepBatch = 200

// unservedAfter is how many leases an attempt must be due, and its entry must have waited, before it is taken from the queue
// of a provider that no process seems to serve any more: one that does may be starting just now, and an attempt that was
// queued again may have been due for long.
const unservedAfter = 4

// Swept says what one pass did.
type Swept struct {
	Requeued int // never sent: another worker sends them
	Unknown  int // sent by a worker that died
}

// SweepLeases settles attempts whose worker gave no sign of life for a lease. What was never sent gets a new queue entry;
// what was sent is UNKNOWN, on purpose. Any number of processes may sweep at once.
func (s *Service) SweepLeases(ctx context.Context) (Swept, error) {
	sys := viewer.NewSystemContext(ctx)
	orphans, err := s.store.Client().Attempt.Query().
		Where(attempt.LeaseExpiresAtNotNil(), attempt.StateIn(attempt.StateSTARTING, attempt.StateRUNNING), s.leaseExpired()).
		Order(ent.Asc(attempt.FieldLeaseExpiresAt)).Limit(s.sweepBatch).All(sys)
	if err != nil {
		return Swept{}, fmt.Errorf("find attempts whose lease is over: %w", err)
	}
	var swept Swept
	var errs []error
	for _, a := range orphans {
		errs = append(errs, s.sweepOne(sys, a, &swept))
	}
	return swept, errors.Join(errs...)
}

func (s *Service) sweepOne(sys context.Context, a *ent.Attempt, swept *Swept) error {
	by, _ := viewer.FromContext(sys)
	count := &swept.Unknown
	err := s.change(sys, by, a.JobID, func(c *change) error {
		now, err := c.find(a.ID)
		if err != nil {
			return err
		}
		// Read again under the lock: the worker may have come back, or been first.
		if now.LeaseToken == nil || a.LeaseToken == nil || *now.LeaseToken != *a.LeaseToken {
			return errLost
		}
		if now.SentAt == nil {
			count = &swept.Requeued
			return c.requeue(now, s.queue.Enqueue, attempt.LeaseToken(*a.LeaseToken), s.leaseExpired())
		}
		f := &Failure{Code: CodeWorkerLost, Message: "The worker died after it had sent the request; nobody can tell what became of it."}
		return c.unknown(a.ID, Outcome{Failure: f}, nil, attempt.LeaseToken(*a.LeaseToken), s.leaseExpired())
	})
	if err != nil {
		return s.ignoreLost(sys, a, err)
	}
	*count++
	return nil
}

// SweepQueue finds attempts that nobody has taken although they have been due for a lease, and whose queue entry nobody
// will work on: a worker died between taking the entry and leasing the attempt, the entry is gone, or it waits for a
// provider that no process knows any more. It looks at all that wait, since a long queue of healthy entries may stand
// before a lost one.
func (s *Service) SweepQueue(ctx context.Context) (Swept, error) {
	sys := viewer.NewSystemContext(ctx)
	var swept Swept
	var errs []error
	for last := ""; ; {
		waiting, err := s.store.Client().Attempt.Query().
			Where(attempt.StateEQ(attempt.StateSTARTING), attempt.SentAtIsNil(), attempt.LeaseTokenIsNil(), s.dueBefore(s.lease),
				attempt.IDGT(last)).
			Order(ent.Asc(attempt.FieldID)).Limit(s.sweepBatch).All(sys)
		if err != nil {
			return swept, errors.Join(append(errs, wrap(err, "find attempts that wait in the queue"))...)
		}
		if err := s.sweepEntries(sys, waiting, &swept); err != nil {
			errs = append(errs, err)
		}
		if len(waiting) < s.sweepBatch {
			return swept, errors.Join(errs...)
		}
		last = waiting[len(waiting)-1].ID
	}
}

func (s *Service) sweepEntries(sys context.Context, waiting []*ent.Attempt, swept *Swept) error {
	by, _ := viewer.FromContext(sys)
	entries := make([]int64, 0, len(waiting))
	for _, a := range waiting {
		if a.QueueEntry != nil {
			entries = append(entries, *a.QueueEntry)
		}
	}
	found, err := s.queue.Look(sys, entries, s.lease, unservedAfter*s.lease)
	if err != nil {
		return wrap(err, "look up queue entries")
	}
	var served map[string]bool
	if slices.Contains(slices.Collect(maps.Values(found)), EntryElsewhere) {
		if served, err = s.servedProviders(sys); err != nil {
			return err
		}
	}
	var errs []error
	for _, a := range waiting {
		enqueue := s.queue.Enqueue
		guards := []predicate.Attempt{attempt.QueueEntryIsNil(), attempt.LeaseTokenIsNil()}
		if a.QueueEntry != nil {
			guards[0] = attempt.QueueEntry(*a.QueueEntry)
			switch found[*a.QueueEntry] {
			case EntryAlive:
				continue
			case EntryElsewhere:
				if served[ProviderOf(a.Target)] {
					continue
				}
				enqueue = s.queue.EnqueueUnserved
				guards = append(guards, s.dueBefore(unservedAfter*s.lease))
			case EntryLost:
			}
		}
		err := s.change(sys, by, a.JobID, func(c *change) error {
			now, err := c.find(a.ID)
			if err != nil {
				return err
			}
			return c.requeue(now, enqueue, guards...)
		})
		if err == nil {
			swept.Requeued++
		}
		errs = append(errs, s.ignoreLost(sys, a, err))
	}
	return errors.Join(errs...)
}

// servedProviders returns those at which some worker of any process holds an attempt now. Where attempts wait for a free
// place there is one.
func (s *Service) servedProviders(sys context.Context) (map[string]bool, error) {
	var targets []string
	err := s.store.Client().Attempt.Query().
		Where(attempt.LeaseExpiresAtNotNil(), attempt.StateIn(attempt.StateSTARTING, attempt.StateRUNNING), attempt.Not(s.leaseExpired())).
		Unique(true).Select(attempt.FieldTarget).Scan(sys, &targets)
	if err != nil {
		return nil, wrap(err, "find the providers that are worked for")
	}
	served := map[string]bool{}
	for _, t := range targets {
		served[ProviderOf(t)] = true
	}
	return served, nil
}

// Release gives up a lease before anything was sent, so that another worker need not wait for it to end.
func (s *Service) Release(ctx context.Context, l *Lease) error {
	sys := viewer.NewSystemContext(ctx)
	by, _ := viewer.FromContext(sys)
	err := s.change(sys, by, l.Job.ID, func(c *change) error {
		a, err := c.find(l.Attempt.ID)
		if err != nil {
			return err
		}
		return c.requeue(a, s.queue.Enqueue, attempt.LeaseToken(l.Token))
	})
	return s.ignoreLost(sys, l.Attempt, err)
}

// enqueueFunc is one of the two ways into a [Queue].
type enqueueFunc = func(ctx context.Context, tx *store.Tx, attemptID, target string, due time.Time) (int64, error)

// requeue gives an attempt that was never sent a new queue entry; the old one, should it still be about, is not its own
// any more.
func (c *change) requeue(a *ent.Attempt, enqueue enqueueFunc, guards ...predicate.Attempt) error {
	entry, err := enqueue(c.ctx, c.tx, a.ID, a.Target, a.DueAt)
	if err != nil {
		return fmt.Errorf("enqueue attempt %s: %w", a.ID, err)
	}
	n, err := c.tx.Attempt.Update().
		Where(attempt.ID(a.ID), attempt.StateEQ(attempt.StateSTARTING), attempt.SentAtIsNil()).Where(guards...).
		SetQueueEntry(entry).ClearLeaseToken().ClearLeaseExpiresAt().Save(c.ctx)
	if err != nil {
		return fmt.Errorf("requeue attempt %s: %w", a.ID, err)
	}
	if n != 1 {
		return errLost // rolls the new entry back
	}
	c.event(EventAttemptRequeued, a.ID, "", "", nil)
	return nil
}

// ignoreLost makes a lost race a line in the log: nothing was changed.
func (s *Service) ignoreLost(ctx context.Context, a *ent.Attempt, err error) error {
	if errors.Is(err, errLost) {
		s.log.LogAttrs(ctx, slog.LevelDebug, "came second", slog.String("job", a.JobID), slog.String("attempt", a.ID))
		return nil
	}
	return wrap(err, "attempt "+a.ID)
}

func wrap(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
