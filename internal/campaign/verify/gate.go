package verify

import "slices"

// contractNotPassed is the code of an attempt that the gate stopped just before it was sent.
const contractNotPassed = "CONTRACT_NOT_PASSED"

// provedOnly is I10: a target that stands in for the job's own has proved its contract, and one that has is not refused.
// Campaigns prove targets beforehand; no contract of theirs expires.
func provedOnly(j *judge) {
	for _, a := range j.h.Attempts {
		job := j.jobs[a.Job]
		if job == nil {
			continue
		}
		own := a.Target == job.Target
		switch {
		case !own && !j.h.Proved[a.Target] && (a.State != failed || a.Code != contractNotPassed || a.Sent):
			j.broken(job.ID, "attempt %s (%s) is at %s, which has not proved its contract", a.ID, a.State, a.Target)
		case a.Code == contractNotPassed && (own || j.h.Proved[a.Target]):
			j.broken(job.ID, "attempt %s was stopped by the gate at %s, which needs no proof or has it", a.ID, a.Target)
		case a.Reason != "MANUAL" && !own && !slices.Contains(job.Fallbacks, a.Target):
			j.broken(job.ID, "attempt %s (%s) is at %s, which is not on the job's route", a.ID, a.Reason, a.Target)
		}
	}
	for _, r := range j.h.Requests {
		a := j.attempts[r.Attempt]
		if a == nil || j.jobs[a.Job] == nil {
			continue // I9 tells it
		}
		if r.Target != j.jobs[a.Job].Target && !j.h.Proved[r.Target] {
			j.broken(a.Job, "the provider got attempt %s at %s, which has not proved its contract", a.ID, r.Target)
		}
	}
	for _, c := range j.h.Calls {
		if c.Type != "FallbackNotAllowed" {
			continue
		}
		if job := j.jobs[c.Job]; c.Target == "" || j.h.Proved[c.Target] || (job != nil && job.Target == c.Target) {
			j.broken(c.Job, "%s was refused %q, which needs no proof or has it", c.Subject, c.Target)
		}
	}
	for _, job := range j.h.Jobs {
		for _, e := range j.eventsOf[job.ID] {
			if e.Type == fallbackSkipped && (e.detail.Target == "" || j.h.Proved[e.detail.Target] || e.detail.Target == job.Target) {
				j.broken(job.ID, "event %d skips %q, which needs no proof or has it", e.Number, e.detail.Target)
			}
		}
	}
}
