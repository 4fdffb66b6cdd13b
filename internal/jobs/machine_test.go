package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/ent/jobevent"
)

// TestAnyOrderOfEvents lets owners, operators, workers and sweepers do anything at any time, and looks at the database
// after each step. Nothing here knows what should have happened; only what must always hold is checked.
func TestAnyOrderOfEvents(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		runs, steps := 12, 25
		rapid.Check(t, func(rt *rapid.T) {
			if runs == 0 {
				return // a bound on time: rapid makes 100 runs
			}
			runs--
			defer func() {
				if rt.Failed() {
					runs = -1 // no bound on making the failure small
				}
			}()
			m := &machine{b: b, t: t, rt: rt, was: map[string]attempt.State{}}
			m.task = rapid.SampledFrom([]string{"plain", "race", "single"}).Draw(rt, "task")
			m.job = b.create(t, m.task)
			for range steps {
				op := rapid.SampledFrom(m.operations()).Draw(rt, "operation")
				m.step(rt, op)
				m.check(op)
			}
		})
	})
}

type machine struct {
	b    *testBundle
	t    *testing.T
	rt   *rapid.T // what fails it is made small
	task string
	job  *ent.Job

	leases    []*Lease                 // of all workers, dead ones too
	sent      []string                 // attempt ids, once per permission to dial
	was       map[string]attempt.State // as of the last step
	events    int
	result    string
	cancelled bool
	state     job.State // as of the last step
}

func (m *machine) operations() []string {
	return []string{
		"take", "take", "send", "send", "acknowledge", "succeed", "succeed invalid", "fail", "fail retryable", "lose",
		"refuse", "cancel attempt", "cancel job", "start", "start at", "resolve succeeded", "resolve failed", "resolve cancelled", "hedge",
		"leases end", "sweep leases", "queue loses", "sweep queue", "release", "replay", "back-off ends", "gate",
	}
}

// step tries one operation. Refusals are expected; only errors that stand for no outcome are not.
func (m *machine) step(rt *rapid.T, op string) {
	ctx, b := m.t.Context(), m.b
	a := rapid.SampledFrom(b.attempts(m.t, m.job.ID)).Draw(rt, "attempt")
	var l *Lease
	if len(m.leases) > 0 {
		l = rapid.SampledFrom(m.leases).Draw(rt, "lease")
	}
	var err error
	switch op {
	case "take":
		var taken *Lease
		entry := rapid.SampledFrom(append(b.queue.of(a.ID), *a.QueueEntry)).Draw(rt, "entry")
		if taken, err = b.Take(ctx, a.ID, entry); err == nil {
			m.leases = append(m.leases, taken)
		}
	case "send":
		if l == nil {
			return
		}
		if err = b.MarkSent(ctx, l); err == nil {
			m.sent = append(m.sent, l.Attempt.ID)
		}
	case "acknowledge":
		// Only who sent it hears from the provider.
		if len(m.sent) > 0 && l != nil {
			l = &Lease{Attempt: b.attempt(m.t, rapid.SampledFrom(m.sent).Draw(rt, "sent")), Job: m.job}
			err = b.Acknowledge(ctx, l, "", "")
		}
	case "succeed", "succeed invalid", "fail", "fail retryable", "lose":
		if len(m.sent) > 0 {
			_, err = b.Settle(ctx, rapid.SampledFrom(m.sent).Draw(rt, "sent"), outcomes[op])
		}
	case "refuse":
		if l != nil {
			err = b.Refuse(ctx, l, Failure{Code: "CIRCUIT_OPEN", Retryable: true})
		}
	case "cancel attempt":
		_, err = b.CancelAttempt(b.ann, a.ID, nil)
	case "cancel job":
		if rapid.IntRange(0, 5).Draw(rt, "really") == 0 {
			_, err = b.CancelJob(b.ann, m.job.ID, nil)
		}
	case "start":
		_, err = b.StartAttempt(b.ann, m.job.ID, nil)
	case "start at":
		_, err = b.StartAttempt(b.op, m.job.ID, new(rapid.SampledFrom([]string{"demo/a", "demo/b", "demo/d", "demo/x"}).Draw(rt, "target")))
	case "resolve succeeded":
		_, err = b.ResolveAttempt(b.op, Resolution{a.ID, "SUCCEEDED", json.RawMessage(`{"answer":"op"}`), "n"})
	case "resolve failed":
		_, err = b.ResolveAttempt(b.op, Resolution{a.ID, "FAILED", nil, "n"})
	case "resolve cancelled":
		_, err = b.ResolveAttempt(b.op, Resolution{a.ID, "CANCELLED", nil, "n"})
	case "hedge":
		err = b.Hedge(ctx, a.ID)
	case "leases end":
		b.expireLeases(m.t)
	case "sweep leases":
		_, err = b.SweepLeases(ctx)
	case "queue loses":
		b.queue.kill(*a.QueueEntry)
	case "sweep queue":
		_, err = b.SweepQueue(ctx)
	case "release":
		if l != nil {
			err = b.Release(ctx, l)
		}
	case "replay":
		var c Created
		c, err = b.Create(b.ann, CreateInput{IdempotencyKey: &m.job.IdempotencyKey, Task: m.task, Input: json.RawMessage(`{"text":"a"}`)})
		require.True(m.rt, c.Replayed)
	case "back-off ends":
		err = b.exec(m.t, "UPDATE attempts SET due_at = "+b.store.Now(-2*b.lease)+" WHERE job_id = '"+m.job.ID+"'")
	case "gate":
		b.gate.toggle(rapid.SampledFrom([]string{"demo/b", "demo/c"}).Draw(rt, "closed"))
	default:
		rt.Fatalf("no operation %q", op)
	}
	m.expected(op, err)
}

var outcomes = map[string]Outcome{
	"succeed":         answer("worker"),
	"succeed invalid": {Output: json.RawMessage(`{"answer":"x","y":1}`)},
	"fail":            {Failure: &Failure{Code: "REFUSED"}},
	"fail retryable":  {Failure: &Failure{Code: "OVERLOADED", Retryable: true}},
	"lose":            {Unknown: true, Failure: &Failure{Code: "TIMEOUT"}},
}

func (m *machine) expected(op string, err error) {
	if err == nil || errors.Is(err, ErrNotYours) || errors.As(err, new(*AttemptBlockedError)) || errors.As(err, new(*AttemptFinishedError)) ||
		errors.As(err, new(*JobFinishedError)) || errors.As(err, new(*FallbackNotAllowedError)) || errors.As(err, new(*InvalidInputError)) {
		return
	}
	require.NoError(m.rt, err, op)
}

// check looks at what must hold after every step, in the database.
func (m *machine) check(op string) {
	t, b := m.rt, m.b
	j, as := b.job(m.t, m.job.ID), b.attempts(m.t, m.job.ID)
	say := fmt.Sprintf("after %s: job %s", op, j.ID)

	open, winner := 0, ""
	count := map[attempt.State]int{}
	for i, a := range as {
		require.Equal(t, i+1, a.Number, say)
		count[a.State]++
		if was, ok := m.was[a.ID]; ok && was != a.State {
			require.Contains(t, moves[was], a.State, "%s: attempt %d from %s", say, a.Number, was)
		}
		m.was[a.ID] = a.State
		if openState(a.State) {
			open++
			require.Equal(t, j.Version, a.JobVersion, "%s: an open attempt can win", say)
		}
		if a.State == attempt.StateSUCCEEDED {
			winner = a.ID
		}
	}
	require.LessOrEqual(t, count[attempt.StateSTARTING], 1, say)
	require.LessOrEqual(t, count[attempt.StateSUCCEEDED], 1, say)
	if m.task != "race" {
		require.LessOrEqual(t, open, 1, say)
	}
	sent := map[string]int{}
	for _, id := range m.sent {
		sent[id]++
		require.Equal(t, 1, sent[id], "%s: sent twice", say)
	}

	if s, ok := whileOpen(as); ok {
		require.Equal(t, s, j.State, say)
	} else {
		require.Contains(t, []job.State{job.StateWAITING, job.StateFAILED, job.StateSUCCEEDED, job.StateCANCELLED}, j.State, say)
	}
	if j.State == job.StateFAILED && m.state != j.State {
		m.nothingIsLeft(say, j, as)
	}
	m.state = j.State
	require.Equal(t, winner != "", j.State == job.StateSUCCEEDED, say)
	if winner != "" {
		require.Equal(t, winner, *j.CompletedByID, say)
		if m.result == "" {
			m.result = string(j.Result)
		}
		require.Equal(t, m.result, string(j.Result), "%s: a result never changes", say)
	} else {
		require.Nil(t, j.Result, say)
	}
	if m.cancelled {
		require.Equal(t, job.StateCANCELLED, j.State, "%s: cancelled is final", say)
	}
	m.cancelled = j.State == job.StateCANCELLED

	// Nothing is left with nothing to move it.
	for _, a := range as {
		if a.State == attempt.StateSTARTING && a.SentAt == nil && a.LeaseToken == nil {
			require.Contains(t, b.queue.of(a.ID), *a.QueueEntry, say)
		}
		if a.State == attempt.StateRUNNING || a.SentAt != nil && a.State == attempt.StateSTARTING {
			require.NotNil(t, a.LeaseExpiresAt, say)
		}
	}

	// Without gaps, and never rewritten: the log tells the states.
	require.GreaterOrEqual(t, j.LastEvent, m.events, say)
	m.events = j.LastEvent
	n := b.store.Client().JobEvent.Query().Where(jobevent.JobID(j.ID)).CountX(b.sys)
	require.Equal(t, j.LastEvent, n, say)
	b.replay(m.t, j.ID)

	resets := 0
	for _, e := range j.QueryEvents().Where(jobevent.Type(EventJobState)).AllX(b.sys) {
		if *e.To == "FAILED" || *e.From == "FAILED" || *e.To == "SUCCEEDED" || *e.To == "CANCELLED" {
			resets++
		}
	}
	require.Equal(t, 1+resets, j.Version, "%s: the version moves with the result slot alone", say)
}

// nothingIsLeft looks at a job that has just become FAILED: each target that it may use was tried and is owed no retry,
// whatever the order in which attempts beside each other ended.
func (m *machine) nothingIsLeft(say string, j *ent.Job, as []*ent.Attempt) {
	byHand := 0
	for _, a := range as {
		if a.Reason == attempt.ReasonMANUAL {
			byHand = a.Number
		}
	}
	for _, target := range append([]string{j.Target}, j.Fallbacks...) {
		if target != j.Target && m.b.gate.isClosed(target) {
			continue
		}
		var last *ent.Attempt
		reached, retries := false, 0
		for _, a := range as {
			if a.Target != target {
				continue
			}
			last = a
			if a.Reason == attempt.ReasonRETRY {
				retries++
			}
			beside := a.Reason == attempt.ReasonHEDGE || a.Reason == attempt.ReasonMANUAL
			reached = reached || !beside || a.SentAt != nil || a.State != attempt.StateFAILED
		}
		if target != j.Target {
			require.True(m.rt, reached, "%s: nothing was ever sent to %s", say, target)
		}
		if last == nil || last.State != attempt.StateFAILED || !*last.ErrorRetryable || last.Reason == attempt.ReasonMANUAL ||
			last.Number < byHand || last.JobVersion != j.Version-1 {
			continue
		}
		if last.Reason == attempt.ReasonHEDGE && last.SentAt == nil {
			continue // before the route came there by itself
		}
		require.GreaterOrEqual(m.rt, retries, map[string]int{"plain": 2, "race": 2}[m.task], "%s: %s is owed a retry", say, target)
	}
}
