package verify

import "strings"

// nothingStranded is I8: no open job is without something that will move it, none is left behind once all rests, and what
// was acknowledged is found again.
func nothingStranded(j *judge) {
	for _, job := range j.h.Jobs {
		j.stateOf(&job)
		var last logged
		j.replay(job.ID, func(e logged, _ *life) {
			if e.Type == jobState && e.To == waiting && (e.detail.By == "" || last.Type != attemptState || last.To != cancelled) {
				j.broken(job.ID, "event %d lets the job wait for its owner, and nobody has cancelled an attempt by hand", e.Number)
			}
			last = e
		})
		if !j.h.Resting {
			continue
		}
		if job.State == queued || job.State == running {
			j.broken(job.ID, "all rests, and it is still %s", job.State)
		}
		for _, a := range j.attemptsOf[job.ID] {
			if a.State == starting || a.State == running {
				j.broken(job.ID, "all rests, and its attempt %s is still %s", a.ID, a.State)
			}
		}
	}
	j.foundAgain()
}

// stateOf compares a job's row with its attempts' rows.
func (j *judge) stateOf(job *Job) {
	has := map[string]bool{}
	for _, a := range j.attemptsOf[job.ID] {
		has[a.State] = true
	}
	want := ""
	switch {
	case has[running]:
		want = running
	case has[unknown]:
		want = unknown
	case has[starting]:
		want = queued
	}
	isOpen := job.State == queued || job.State == running || job.State == unknown
	switch {
	case isOpen && want == "":
		j.broken(job.ID, "it is %s and has no open attempt: nothing will move it", job.State)
	case want != "" && job.State != want:
		j.broken(job.ID, "it is %s; with such open attempts it should be %s", job.State, want)
	}
}

// foundAgain: who asks by an id, which nobody can guess before the row is there, and may see it, finds it.
func (j *judge) foundAgain() {
	for _, c := range j.h.Calls {
		if c.Type != foundNothing && c.Type != notFound {
			continue
		}
		id := c.Job
		if strings.HasPrefix(id, "att_") { // node takes either
			id = ""
			if a := j.attempts[c.Job]; a != nil {
				id = a.Job
			}
		}
		if id == "" {
			id = j.jobNamed(&c)
		}
		if job := j.jobs[id]; job != nil && (c.Operator || job.Owner == c.Subject) {
			j.broken(job.ID, "%s of %s found nothing", c.Op, c.Subject)
		}
	}
}
