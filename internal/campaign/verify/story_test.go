package verify_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

// story builds small histories that are right, step by step, a second each. Tests then break them.
type story struct {
	verify.History
	now time.Duration
}

const (
	primary  = "demo/inkjet"
	fallback = "demo/laser"
	unproved = "demo/fax"
)

func tell(steps ...func(*story)) *story {
	s := &story{History: verify.History{
		Proved: map[string]bool{fallback: true}, MayRace: map[string]bool{"triage": true}, Resting: true,
		Conforms: func(_ string, output json.RawMessage) error {
			var o map[string]string
			if err := json.Unmarshal(output, &o); err != nil || o["answer"] == "" {
				return fmt.Errorf("no answer in %s", output)
			}
			return nil
		},
	}}
	for _, step := range steps {
		step(s)
	}
	return s
}

// then goes on with a story.
func (s *story) then(steps ...func(*story)) *story {
	for _, step := range steps {
		step(s)
	}
	return s
}

func (s *story) tick() time.Duration { s.now += time.Second; return s.now }

func (s *story) job(id string) *verify.Job {
	for i := range s.Jobs {
		if s.Jobs[i].ID == id {
			return &s.Jobs[i]
		}
	}
	panic("no job " + id)
}

func (s *story) attempt(id string) *verify.Attempt {
	for i := range s.Attempts {
		if s.Attempts[i].ID == id {
			return &s.Attempts[i]
		}
	}
	panic("no attempt " + id)
}

func (s *story) event(job, kind, attempt, from, to, detail string) {
	j := s.job(job)
	j.LastEvent++
	e := verify.Event{Job: job, Number: j.LastEvent, Type: kind, Attempt: attempt, From: from, To: to}
	if detail != "" {
		e.Detail = json.RawMessage(detail)
	}
	s.Events = append(s.Events, e)
}

func (s *story) seen(job string) *verify.Seen {
	j := s.job(job)
	return &verify.Seen{
		ID: j.ID, Key: j.Key, Owner: j.Owner, Task: j.Task, State: j.State, Version: j.Version, Input: j.Input, Result: j.Result,
		CompletedBy: j.CompletedBy,
	}
}

// call adds a call of two seconds; its answer is what fill adds.
func (s *story) call(c verify.Call) {
	if c.Start == 0 {
		c.Start = s.tick()
	}
	if c.End == 0 {
		c.End = s.tick()
	}
	s.Calls = append(s.Calls, c)
}

func by(subject string, operator bool, more string) string {
	d := fmt.Sprintf(`"by":%q`, subject)
	if operator {
		d += `,"operator":true`
	}
	if more != "" {
		d += "," + more
	}
	return "{" + d + "}"
}

// creates makes job N with attempt N.1 for alice by an answered call.
func creates(n int) func(*story) { return createsFor("alice", n) }

func createsFor(owner string, n int) func(*story) {
	return func(s *story) {
		job := fmt.Sprintf("job_%d", n)
		start := s.tick()
		s.row(owner, n)
		s.call(verify.Call{
			Start: start, Subject: owner, Op: verify.OpCreate, Key: s.job(job).Key, Task: "triage", Input: s.job(job).Input,
			Type: "CreateJobSuccess", Found: s.seen(job),
		})
	}
}

// createsUnheard is the same, and the answer is lost.
func createsUnheard(n int) func(*story) {
	return func(s *story) {
		start := s.tick()
		s.row("alice", n)
		j := s.job(fmt.Sprintf("job_%d", n))
		s.call(verify.Call{
			Start: start, End: verify.Never, Subject: "alice", Op: verify.OpCreate, Key: j.Key, Task: "triage", Input: j.Input,
			Transport: "reset",
		})
	}
}

func (s *story) row(owner string, n int) {
	job := fmt.Sprintf("job_%d", n)
	s.Jobs = append(s.Jobs, verify.Job{
		ID: job, Owner: owner, Key: fmt.Sprintf("key-%d", n), Task: "triage", Target: primary, State: "QUEUED", Version: 1,
		Fallbacks: []string{fallback, unproved}, Input: json.RawMessage(fmt.Sprintf(`{"text":"t%d","n":1}`, n)),
	})
	s.event(job, "JOB_CREATED", "", "", "QUEUED", by(owner, false, ""))
	s.adds(job, "att_"+fmt.Sprint(n)+".1", primary, "PRIMARY", owner, false)
}

// adds creates an attempt; no subject means the system.
func (s *story) adds(job, id, target, reason, subject string, operator bool) {
	n := 1
	for _, a := range s.Attempts {
		if a.Job == job {
			n++
		}
	}
	j := s.job(job)
	version := j.Version
	if j.State == "FAILED" {
		version++
	}
	s.Attempts = append(s.Attempts, verify.Attempt{
		ID: id, Job: job, Target: target, Reason: reason, State: "STARTING", Number: n, JobVersion: version,
	})
	d := fmt.Sprintf(`"target":%q,"reason":%q`, target, reason)
	if subject == "" {
		s.event(job, "ATTEMPT_CREATED", id, "", "STARTING", "{"+d+"}")
		return
	}
	s.event(job, "ATTEMPT_CREATED", id, "", "STARTING", by(subject, operator, d))
}

// moves an attempt.
func moves(id, to, detail string) func(*story) {
	return func(s *story) {
		a := s.attempt(id)
		s.event(a.Job, "ATTEMPT_STATE", id, a.State, to, detail)
		a.State = to
		var d struct{ Code string }
		if detail != "" {
			if err := json.Unmarshal([]byte(detail), &d); err != nil {
				panic(err)
			}
		}
		a.Code = d.Code
	}
}

// becomes moves a job, with its version.
func becomes(job, to, detail string) func(*story) {
	return func(s *story) {
		j := s.job(job)
		if j.State == to {
			return
		}
		if j.State == "FAILED" || to == "FAILED" || to == "CANCELLED" || to == "SUCCEEDED" {
			j.Version++
		}
		s.event(job, "JOB_STATE", "", j.State, to, detail)
		j.State = to
	}
}

// sends lets the provider get an attempt and decide on its fate.
func sends(id string, fate verify.Fate) func(*story) {
	return func(s *story) {
		a := s.attempt(id)
		a.Sent = true
		r := verify.Request{At: s.tick(), End: verify.Never, Attempt: id, Target: a.Target, Whole: fate != verify.Cut, Fate: fate}
		if fate == verify.Answered || fate == verify.Broken {
			r.End = s.tick()
			r.Mark = fmt.Sprintf("mark-%dx", 100+len(s.Requests))
			r.Output = json.RawMessage(fmt.Sprintf(`{"answer":%q}`, r.Mark))
			if fate == verify.Broken {
				r.Output = json.RawMessage(fmt.Sprintf(`{"wrong":%q}`, r.Mark))
			}
		}
		s.Requests = append(s.Requests, r)
	}
}

func (s *story) request(attempt string) *verify.Request {
	for i := range s.Requests {
		if s.Requests[i].Attempt == attempt {
			return &s.Requests[i]
		}
	}
	panic("no request " + attempt)
}

// acknowledges makes attempt and job RUNNING.
func acknowledges(id string) func(*story) {
	return func(s *story) { s.then(moves(id, "RUNNING", ""), becomes(s.attempt(id).Job, "RUNNING", "")) }
}

// loses makes attempt and job UNKNOWN.
func loses(id, code string) func(*story) {
	return func(s *story) {
		s.then(moves(id, "UNKNOWN", fmt.Sprintf(`{"code":%q}`, code)), becomes(s.attempt(id).Job, "UNKNOWN", ""))
	}
}

// wins claims with the provider's output.
func wins(id string) func(*story) {
	return func(s *story) { s.claims(id, s.request(id).Output, "") }
}

func (s *story) claims(id string, result json.RawMessage, detail string) {
	a := s.attempt(id)
	s.then(moves(id, "SUCCEEDED", detail))
	for _, b := range s.Attempts {
		if b.Job == a.Job && (b.State == "STARTING" || b.State == "RUNNING" || b.State == "UNKNOWN") {
			s.then(moves(b.ID, "SUPERSEDED", `{"code":"SUPERSEDED"}`))
		}
	}
	s.then(becomes(a.Job, "SUCCEEDED", detail))
	j := s.job(a.Job)
	j.Result, j.CompletedBy = result, id
	s.Everything += string(result) + "\n"
}

// fails is a definite no, after which the job has no candidate.
func fails(id, code string) func(*story) {
	return func(s *story) {
		d := fmt.Sprintf(`{"code":%q}`, code)
		s.then(moves(id, "FAILED", d), becomes(s.attempt(id).Job, "FAILED", d))
	}
}

// goesOn is a definite no, after which another attempt is made.
func goesOn(id, code, next, target, reason string) func(*story) {
	return func(s *story) {
		job := s.attempt(id).Job
		s.then(moves(id, "FAILED", fmt.Sprintf(`{"code":%q}`, code)))
		s.adds(job, next, target, reason, "", false)
		s.then(becomes(job, "QUEUED", ""))
	}
}

// reads adds an answered look at the job by its owner.
func reads(job string) func(*story) {
	return func(s *story) {
		s.call(verify.Call{Subject: s.job(job).Owner, Op: verify.OpRead, Job: job, Type: "Job", Found: s.seen(job)})
	}
}

// starts adds an attempt by hand.
func starts(job, id, target, subject string, operator bool) func(*story) {
	return func(s *story) {
		start := s.tick()
		s.adds(job, id, target, "MANUAL", subject, operator)
		to := "QUEUED"
		for _, a := range s.Attempts {
			if a.Job == job && a.State == "RUNNING" {
				to = "RUNNING"
			}
		}
		s.then(becomes(job, to, by(subject, operator, "")))
		s.call(verify.Call{
			Start: start, Subject: subject, Operator: operator, Op: verify.OpStart, Job: job, Target: target, Type: "StartAttemptSuccess",
			Found: s.seen(job), Settled: &verify.SeenAttempt{ID: id, State: "STARTING"},
		})
	}
}

// cancels one attempt by hand.
func cancels(id, subject string, operator bool) func(*story) {
	return func(s *story) {
		start, job := s.tick(), s.attempt(id).Job
		d := by(subject, operator, `"code":"CANCELLED"`)
		s.then(moves(id, "CANCELLED", d), becomes(job, "WAITING", by(subject, operator, "")))
		s.call(verify.Call{
			Start: start, Subject: subject, Operator: operator, Op: verify.OpCancel, Attempt: id, Type: "CancelAttemptSuccess",
			Found: s.seen(job), Settled: &verify.SeenAttempt{ID: id, State: "CANCELLED"},
		})
	}
}

// resolves an attempt by an operator's word; the call follows from outcome.
func resolves(id, outcome, result string) func(*story) {
	return func(s *story) {
		start, job := s.tick(), s.attempt(id).Job
		c := verify.Call{
			Start: start, Subject: "olga", Operator: true, Op: verify.OpResolve, Attempt: id, Outcome: outcome, Type: "ResolveAttemptSuccess",
			Settled: &verify.SeenAttempt{ID: id, State: outcome},
		}
		d := by("olga", true, `"note":"n"`)
		switch outcome {
		case "SUCCEEDED":
			c.Result = json.RawMessage(result)
			s.claims(id, c.Result, d)
		case "FAILED":
			s.then(moves(id, "FAILED", by("olga", true, `"code":"RESOLVED_AS_FAILED"`)), becomes(job, "FAILED", d))
		case "CANCELLED":
			s.then(moves(id, "CANCELLED", by("olga", true, `"code":"CANCELLED"`)), becomes(job, "WAITING", d))
		}
		c.Found = s.seen(job)
		s.call(c)
	}
}

// ends a job by hand.
func ends(job, subject string, operator bool) func(*story) {
	return func(s *story) {
		start := s.tick()
		for _, a := range s.Attempts {
			if a.Job == job && (a.State == "STARTING" || a.State == "RUNNING" || a.State == "UNKNOWN") {
				s.then(moves(a.ID, "CANCELLED", by(subject, operator, `"code":"CANCELLED"`)))
			}
		}
		s.then(becomes(job, "CANCELLED", by(subject, operator, "")))
		s.call(verify.Call{
			Start: start, Subject: subject, Operator: operator, Op: verify.OpEnd, Job: job, Type: "CancelJobSuccess", Found: s.seen(job),
		})
	}
}

// watches adds a stream of the job from after one number up to another.
func watches(job string, after, last int, complete bool) func(*story) {
	return func(s *story) {
		st := verify.Stream{Job: job, After: after, Complete: complete}
		for _, e := range s.Events {
			if e.Job == job && e.Number > after && e.Number <= last {
				st.Events = append(st.Events, e)
			}
		}
		s.Streams = append(s.Streams, st)
	}
}

// one is a job that the first attempt wins, without any trouble.
func one() *story {
	return tell(creates(1), sends("att_1.1", verify.Answered), acknowledges("att_1.1"), wins("att_1.1"), reads("job_1"))
}

// lost is a job whose attempt is UNKNOWN.
func lost() *story {
	return tell(creates(1), sends("att_1.1", verify.Ambiguous), acknowledges("att_1.1"), loses("att_1.1", "IDLE_TIMEOUT"), reads("job_1"))
}

// none is a job that FAILED.
func none() *story {
	return tell(creates(1), sends("att_1.1", verify.Refused), fails("att_1.1", "PROVIDER_REJECTED"), reads("job_1"))
}

// example is a history and what must be said of it.
type example struct {
	name string
	of   *story
	do   func(*story)
	says string // "" if it is right, else part of a violation of the rule
}

// judged runs the examples of one rule. A right one breaks no rule at all; a wrong one breaks this one.
func judged(t *testing.T, rule string, examples []example) {
	t.Helper()
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			if e.do != nil {
				e.do(e.of)
			}
			got := verify.Check(&e.of.History)
			if e.says == "" {
				require.Empty(t, got, verify.Report(got))
				return
			}
			for _, v := range got {
				if v.Rule == rule && strings.Contains(v.Text, e.says) {
					return
				}
			}
			require.Failf(t, "not noticed", "%s with %q, but: %s", rule, e.says, verify.Report(got))
		})
	}
}
