package verify

import "slices"

// unseenByOthers is I11: nobody but its owner and operators sees a job or learns that there is one.
func unseenByOthers(j *judge) {
	for i := range j.h.Calls {
		c := &j.h.Calls[i]
		if c.Operator || !c.Answered() {
			continue
		}
		if c.Found != nil {
			row := j.jobs[c.Found.ID]
			if c.Found.Owner != c.Subject || (row != nil && row.Owner != c.Subject) {
				j.broken(c.Found.ID, "%s of %s was answered with a job of %s", c.Op, c.Subject, c.Found.Owner)
			}
		}
		if c.Settled != nil {
			if job := j.jobOfAttempt(c.Settled.ID); job != nil && job.Owner != c.Subject {
				j.broken(job.ID, "%s of %s was answered with attempt %s of a job of %s", c.Op, c.Subject, c.Settled.ID, job.Owner)
			}
		}
		job := j.jobAsked(c)
		stranger := job != nil && job.Owner != c.Subject
		if stranger && (c.Type != "" || c.Code == "FORBIDDEN") && c.Type != notFound && c.Type != foundNothing {
			j.broken(job.ID, "%s of %s, a stranger, was answered %s %s", c.Op, c.Subject, c.Type, c.Code)
		}
		if c.Op == OpResolve && !stranger && c.Type != "" && c.Type != notFound {
			j.broken(j.jobNamed(c), "%s is no operator, and resolveAttempt was answered %s", c.Subject, c.Type)
		}
	}
}

// jobAsked is the row of the job that a call asked for by any id, or nil. node takes a job's and an attempt's.
func (v *view) jobAsked(c *Call) *Job {
	for _, id := range []string{c.Job, c.Attempt} {
		if job := v.jobs[id]; job != nil {
			return job
		}
		if job := v.jobOfAttempt(id); job != nil {
			return job
		}
	}
	return nil
}

func (v *view) jobOfAttempt(id string) *Job {
	if a := v.attempts[id]; a != nil {
		return v.jobs[a.Job]
	}
	return nil
}

// signedByWho is I11 in the log: what a person did says so, and nobody's name stands under what that person did not do.
func signedByWho(j *judge) {
	for _, job := range j.h.Jobs {
		for _, e := range j.eventsOf[job.ID] {
			by := e.detail.By
			switch {
			case by == "" && handmade(e):
				j.broken(job.ID, "event %d (%s to %q, %s) is what a person does, and does not say who", e.Number, e.Type, e.To, e.detail.Code)
			case by == "" && e.detail.Operator:
				j.broken(job.ID, "event %d is an operator's and does not say whose", e.Number)
			case by == "":
			case by != job.Owner && !e.detail.Operator:
				j.broken(job.ID, "event %d is by %s, who is neither the owner nor said to be an operator", e.Number, by)
			case !j.mayHaveDone(&job, e):
				j.broken(job.ID, "event %d (%s to %q) is by %s (operator: %t), who asked for nothing of the kind", e.Number, e.Type, e.To, by, e.detail.Operator)
			}
		}
	}
	for i := range j.h.Calls {
		j.leftItsEvent(&j.h.Calls[i])
	}
}

// handmade reports whether an event is a person's act by its nature.
func handmade(e logged) bool {
	switch e.Type {
	case jobCreated:
		return true
	case jobState:
		return e.To == cancelled || e.To == waiting || e.From == failed || e.From == waiting
	case attemptCreated:
		return e.detail.Reason == "MANUAL" || e.detail.Reason == "PRIMARY"
	case attemptState:
		return (e.To == cancelled && e.detail.Code != "PRESUMED_DEAD") || e.detail.Code == resolvedAsFailed
	}
	return false
}

// mutations are what changes a job, apart from createJob.
var mutations = []string{OpStart, OpCancel, OpResolve, OpEnd}

// refusals change nothing. AttemptFinished may have: what an operator brought too late supersedes an attempt.
var refusals = []string{notFound, "InvalidInput", "AttemptBlocked", "FallbackNotAllowed", jobFinished}

// mayHaveDone: a call of that subject was answered with success or not at all.
func (j *judge) mayHaveDone(job *Job, e logged) bool {
	did := func(c *Call) bool {
		return c.Subject == e.detail.By && c.Operator == e.detail.Operator && (!c.Answered() || c.Type != "") && !slices.Contains(refusals, c.Type)
	}
	if e.Number <= 2 { // the job and its first attempt
		return slices.ContainsFunc(j.keysOf[ownedKey{job.Owner, job.Key}].creates, did)
	}
	return slices.ContainsFunc(j.callsOf[job.ID], func(c *Call) bool {
		return slices.Contains(mutations, c.Op) && j.jobNamed(c) == job.ID && did(c)
	})
}

// leftItsEvent: an answered success is an event with the caller's name.
func (j *judge) leftItsEvent(c *Call) {
	id := j.jobNamed(c)
	var is func(e logged) bool
	switch c.Type {
	case created:
		if c.Replayed || c.Found == nil {
			return
		}
		id = c.Found.ID
		is = func(e logged) bool { return e.Type == jobCreated }
	case started:
		if c.Settled == nil {
			return // I12 tells it
		}
		is = func(e logged) bool {
			return e.Type == attemptCreated && e.Attempt == c.Settled.ID && e.detail.Reason == "MANUAL" &&
				(c.Target == "" || e.detail.Target == c.Target)
		}
	case cancelledOne:
		is = func(e logged) bool { return e.Type == attemptState && e.Attempt == c.Attempt && e.To == cancelled }
	case resolved:
		is = func(e logged) bool { return e.Type == attemptState && e.Attempt == c.Attempt && e.To == c.Outcome }
	case cancelledJob:
		is = func(e logged) bool { return e.Type == jobState && e.To == cancelled }
	default:
		return
	}
	if !slices.ContainsFunc(j.eventsOf[id], func(e logged) bool {
		return is(e) && e.detail.By == c.Subject && e.detail.Operator == c.Operator
	}) {
		j.broken(id, "%s of %s (operator: %t) was answered %s, and no event with that name tells it", c.Op, c.Subject, c.Operator, c.Type)
	}
}
