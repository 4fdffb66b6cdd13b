package verify

import "slices"

// oneAtATime is I3: no attempt is created while another one blocks it, and who is told of a blocker is told the right one.
func oneAtATime(j *judge) {
	for _, job := range j.h.Jobs {
		j.replay(job.ID, func(e logged, before *life) {
			if e.Type != attemptCreated {
				return
			}
			for _, id := range before.order {
				if s := before.attempts[id]; j.blocks(&job, s) {
					j.broken(job.ID, "event %d creates attempt %s while %s is %s", e.Number, e.Attempt, id, s)
				}
			}
		})
	}
	for _, c := range j.h.Calls {
		if c.Type != "AttemptBlocked" {
			continue
		}
		job := j.jobs[c.Job]
		if job == nil || c.Settled == nil {
			j.broken(c.Job, "%s was told of a blocker, and the job has no row or the answer no attempt", c.Subject)
			continue
		}
		a := j.attempts[c.Settled.ID]
		if a == nil || a.Job != job.ID || !j.blocks(job, c.Settled.State) {
			j.broken(job.ID, "%s was told that attempt %s blocks, which is %s; it is none of the job's blockers", c.Subject, c.Settled.ID, c.Settled.State)
		}
	}
}

func (v *view) blocks(job *Job, state string) bool {
	return state == starting || state == unknown || (state == running && !v.h.MayRace[job.Task])
}

var (
	// silence says that nobody can tell what the provider does, once a request began to be written.
	silence = []string{
		"ACK_TIMEOUT", "IDLE_TIMEOUT", "TOTAL_TIMEOUT", "CONNECTION_LOST", "STREAM_TRUNCATED", "GATEWAY_ERROR", "ABORTED", "INTERNAL_ERROR",
	}
	// halfSent says that the request did not come to its end.
	halfSent = []string{"REQUEST_NOT_SENT", "PROVIDER_UNREACHABLE", "TLS_FAILED"}
	// unsent says that nothing was written at all.
	unsent = []string{"CONTRACT_NOT_PASSED", "TARGET_UNKNOWN", "PROMPT_NOT_RENDERED"}
	// neverFailed are reasons that leave an attempt UNKNOWN or CANCELLED, sent or not.
	neverFailed = []string{"WORKER_LOST", "PRESUMED_DEAD"}
)

// resolvedAsFailed is an operator's word for an attempt that nobody else can settle.
const resolvedAsFailed = "RESOLVED_AS_FAILED"

// neverGuessed is I4: FAILED is a definite no. The provider's own log says where there was none.
func neverGuessed(j *judge) {
	for _, job := range j.h.Jobs {
		j.replay(job.ID, func(e logged, before *life) {
			switch {
			case e.Type == attemptState && e.To == failed:
				j.definite(e)
			case e.Type == jobState && (e.To == failed || e.To == waiting) && before.openOne() != "":
				id := before.openOne()
				j.broken(job.ID, "event %d makes the job %s while attempt %s is %s", e.Number, e.To, id, before.attempts[id])
			}
		})
	}
}

func (j *judge) definite(e logged) {
	code := e.detail.Code
	if code == resolvedAsFailed {
		if e.detail.By == "" || !e.detail.Operator || e.From != unknown {
			j.broken(e.Job, "event %d settles attempt %s from %s as %s; only an operator may, and only from UNKNOWN", e.Number, e.Attempt, e.From, code)
		}
		return
	}
	if slices.Contains(neverFailed, code) {
		j.broken(e.Job, "attempt %s FAILED with %s, which is not a no", e.Attempt, code)
	}
	for _, r := range j.requestsOf[e.Attempt] {
		switch {
		case r.Whole && (r.Fate == Answered || r.Fate == Ambiguous):
			j.broken(e.Job, "attempt %s FAILED with %s; to the provider its fate was %s", e.Attempt, code, r.Fate)
		case slices.Contains(silence, code) || slices.Contains(unsent, code):
			j.broken(e.Job, "attempt %s FAILED with %s; the provider had got its request", e.Attempt, code)
		case slices.Contains(halfSent, code) && r.Whole:
			j.broken(e.Job, "attempt %s FAILED with %s; the provider had got its request whole", e.Attempt, code)
		}
	}
}
