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
	due, ok := c.retryAt(a, f, task.Retry)
	if ok && a.Target != c.job.Target { // a retry at a fallback is an attempt at a fallback
		if ok, err = c.passes(task, a.Target); err != nil {
			return err
		}
	}
	if ok {
		d := detail{"retryOf": a.ID}
		if due.After(c.s.now()) {
			d["dueAt"] = due.Format(time.RFC3339Nano)
		}
		if _, err := c.add(a.Target, attempt.ReasonRETRY, due, d); err != nil {
			return err
		}
		c.becomes(job.StateQUEUED, false, nil)
		return nil
	}
	target, ok, err := c.nextFallback(task)
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

// retryAt says whether and when the same target is tried again. The budget is one per job and target.
func (c *change) retryAt(a *ent.Attempt, f *Failure, p tasks.RetryPolicy) (time.Time, bool) {
	if !f.Retryable || a.Reason == attempt.ReasonMANUAL {
		return time.Time{}, false
	}
	used := 0
	for _, b := range c.attempts {
		if b.Target == a.Target && b.Reason == attempt.ReasonRETRY {
			used++
		}
	}
	if used >= p.Max || f.RetryAfter > p.Cap {
		return time.Time{}, false
	}
	return c.s.now().Add(max(f.RetryAfter, backoff(p, used, c.s.jitter()))), true
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
func (c *change) nextFallback(task *tasks.Definition) (string, bool, error) {
	for _, target := range c.job.Fallbacks {
		if c.tried(target) {
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

func (c *change) tried(target string) bool {
	return slices.ContainsFunc(c.attempts, func(a *ent.Attempt) bool { return a.Target == target })
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
