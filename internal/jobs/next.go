package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/tasks"
)

// settled moves the job on after an attempt of it ended without a result: a retry, the next fallback that the gate
// allows, or the job's end. It is part of the transaction that settled the attempt, so that no open job is left with
// nothing to move it.
//
// While another attempt is open, nothing is started. So what follows the last one is told from all attempts of the job:
// one that had failed during a race is owed what it would have got without the race.
func (c *change) settled(a *ent.Attempt, f *Failure) error {
	if s, ok := whileOpen(c.attempts); ok { // another attempt is under way
		c.becomes(s, false, nil)
		if a.Reason == attempt.ReasonHEDGE && a.SentAt == nil {
			return c.hedgeOn(a)
		}
		return nil
	}
	task, err := c.s.version(c.ctx, c.tx.Client, c.job.TaskVersion)
	if err != nil {
		return err
	}
	if ok, err := c.retry(task, a); ok || err != nil {
		return err
	}
	target, ok, err := c.nextFallback(task, c.triedOnRoute)
	if err != nil {
		return err
	}
	if ok {
		if _, err := c.add(target, attempt.ReasonFALLBACK, c.s.now(), detail{"after": a.ID}); err != nil {
			return err
		}
		c.becomes(job.StateQUEUED, false, nil)
		return nil
	}
	c.becomes(job.StateFAILED, true, detail{"code": f.Code})
	return nil
}

// retry adds the first retry that is owed and that the gate allows: to the attempt that just ended, then to the others in
// their order.
func (c *change) retry(task *tasks.Definition, last *ent.Attempt) (bool, error) {
	others := slices.DeleteFunc(slices.Clone(c.attempts), func(a *ent.Attempt) bool { return a == last })
	for _, a := range append([]*ent.Attempt{last}, others...) {
		due, ok := c.retryAt(a, task.Retry)
		if ok && a.Target != c.job.Target { // a retry at a fallback is an attempt at a fallback
			var err error
			if ok, err = c.passes(task, a.Target); err != nil {
				return false, err
			}
		}
		if !ok {
			continue
		}
		d := detail{"retryOf": a.ID}
		if due.After(c.s.now()) {
			d["dueAt"] = due.Format(time.RFC3339Nano)
		}
		if _, err := c.add(a.Target, attempt.ReasonRETRY, due, d); err != nil {
			return false, err
		}
		c.becomes(job.StateQUEUED, false, nil)
		return true, nil
	}
	return false, nil
}

// retryAt says whether an attempt is owed a retry of its target, and when, counted from its end. The budget is one per job
// and target.
func (c *change) retryAt(a *ent.Attempt, p tasks.RetryPolicy) (time.Time, bool) {
	if a.State != attempt.StateFAILED || a.ErrorRetryable == nil || !*a.ErrorRetryable || a.Reason == attempt.ReasonMANUAL ||
		turnedAway(a) || c.followed(a) {
		return time.Time{}, false
	}
	used := 0
	for _, b := range c.attempts {
		if b.Target == a.Target && b.Reason == attempt.ReasonRETRY {
			used++
		}
	}
	var told time.Duration
	if a.ErrorRetryAfterMs != nil {
		told = time.Duration(*a.ErrorRetryAfterMs) * time.Millisecond
	}
	if used >= p.Max || told > p.Cap {
		return time.Time{}, false
	}
	due := a.FinishedAt.Add(max(told, backoff(p, used, c.s.jitter())))
	if now := c.s.now(); due.Before(now) {
		due = now
	}
	return due, true
}

// followed says that nothing is owed to a failed attempt any more: its target got another attempt, the job was re-opened
// since, or somebody started an attempt by hand after it had failed, which takes the place of a retry that waits.
func (c *change) followed(a *ent.Attempt) bool {
	return a.JobVersion != c.job.Version || slices.ContainsFunc(c.attempts, func(b *ent.Attempt) bool {
		return b.Number > a.Number && (b.Target == a.Target && !turnedAway(b) ||
			b.Reason == attempt.ReasonMANUAL && !b.CreatedAt.Before(*a.FinishedAt))
	})
}

// backoff doubles from base to cap; jitter in [0, 1) takes up to half of it away, so that many jobs that failed together
// do not come back together.
func backoff(p tasks.RetryPolicy, used int, jitter float64) time.Duration {
	d := p.Base
	for range used {
		if d >= p.Cap {
			break
		}
		d *= 2
	}
	d = min(d, p.Cap)
	return d - time.Duration(jitter*float64(d)/2)
}

// nextFallback returns the first untried fallback that the gate allows, and logs why the ones before it are skipped.
func (c *change) nextFallback(task *tasks.Definition, tried func(target string) bool) (string, bool, error) {
	for _, target := range c.job.Fallbacks {
		if tried(target) {
			continue
		}
		if ok, err := c.passes(task, target); err != nil || ok {
			return target, ok, err
		}
	}
	return "", false, nil
}

// passes asks the gate about a fallback and logs why it is skipped, if it is.
func (c *change) passes(task *tasks.Definition, target string) (bool, error) {
	d, err := c.s.allowed(c.ctx, c.tx.Client, task, target)
	if err != nil {
		return false, err
	}
	if !d.Allowed {
		c.event(EventFallbackSkipped, "", "", "", detail{"target": target, "reasons": d.Reasons})
	}
	return d.Allowed, nil
}

// triedAtAll is for attempts beside another one and by hand: no target is asked twice.
func (c *change) triedAtAll(target string) bool {
	return slices.ContainsFunc(c.attempts, func(a *ent.Attempt) bool { return a.Target == target })
}

// triedOnRoute is for the route, which still comes to a target that nothing was sent to. It comes there once: what is
// turned away then is a FALLBACK, and counts.
func (c *change) triedOnRoute(target string) bool {
	return slices.ContainsFunc(c.attempts, func(a *ent.Attempt) bool { return a.Target == target && !turnedAway(a) })
}

// turnedAway says that an attempt beside the route, a hedge or one by hand, ended before it was sent, and for a reason that
// may pass: an open circuit or a closed gate, not a prompt that is too long. The route goes on as if it had not been.
func turnedAway(a *ent.Attempt) bool {
	return a.State == attempt.StateFAILED && a.SentAt == nil &&
		(a.Reason == attempt.ReasonHEDGE || a.Reason == attempt.ReasonMANUAL) &&
		(a.ErrorRetryable != nil && *a.ErrorRetryable || a.ErrorCode != nil && *a.ErrorCode == CodeContractNotPassed)
}

// allowed asks the gate about a fallback, after this process knows the target at all.
func (s *Service) allowed(ctx context.Context, q *ent.Client, task *tasks.Definition, target string) (gate.Decision, error) {
	if !s.targets.Known(target) {
		return gate.Decision{State: gate.Missing, Reasons: []string{"There is no such target here."}}, nil
	}
	d, err := s.gate.Check(ctx, q, task, target)
	if err != nil {
		return gate.Decision{}, fmt.Errorf("ask the gate about %s: %w", target, err)
	}
	return d, nil
}
