package verify

import "slices"

// attemptMoves are the legal moves of an attempt, as the design has them.
var attemptMoves = map[string][]string{
	"":       {starting},
	starting: {running, failed, unknown, cancelled, succeeded, superseded},
	running:  {succeeded, failed, unknown, cancelled, superseded},
	unknown:  {succeeded, failed, cancelled, superseded},
}

// jobMoves are those of a job. A job that WAITS or FAILED goes on by a new attempt alone, which is STARTING.
var jobMoves = map[string][]string{
	"":      {queued},
	queued:  {running, unknown, waiting, succeeded, failed, cancelled},
	running: {queued, unknown, waiting, succeeded, failed, cancelled},
	unknown: {queued, running, waiting, succeeded, failed, cancelled},
	waiting: {queued, cancelled},
	failed:  {queued},
}

// Answers of mutations.
const (
	started         = "StartAttemptSuccess"
	cancelledOne    = "CancelAttemptSuccess"
	resolved        = "ResolveAttemptSuccess"
	cancelledJob    = "CancelJobSuccess"
	attemptFinished = "AttemptFinished"
	jobFinished     = "JobFinished"
)

// terminalStays is I12 in the log: every move is a legal one, and nothing happens to what is over.
func terminalStays(j *judge) {
	for _, job := range j.h.Jobs {
		j.replay(job.ID, func(e logged, before *life) {
			if before.job == succeeded || before.job == cancelled {
				j.broken(job.ID, "event %d (%s) comes after the job was %s", e.Number, e.Type, before.job)
			}
			switch e.Type {
			case attemptCreated, attemptState:
				if !slices.Contains(attemptMoves[e.From], e.To) || (e.From == "") != (e.Type == attemptCreated) {
					j.broken(job.ID, "event %d moves attempt %s from %q to %q, which is no legal move", e.Number, e.Attempt, e.From, e.To)
				}
				if e.Type == attemptCreated && (before.job == failed || before.job == waiting) && e.detail.Reason != "MANUAL" {
					j.broken(job.ID, "event %d starts attempt %s (%s) of a job that is %s; only a person may", e.Number, e.Attempt, e.detail.Reason, before.job)
				}
			case jobCreated, jobState:
				if !slices.Contains(jobMoves[e.From], e.To) || (e.From == "") != (e.Type == jobCreated) {
					j.broken(job.ID, "event %d moves the job from %q to %q, which is no legal move", e.Number, e.From, e.To)
				}
			}
		})
	}
}

// verdictsStand is I12 in the answers: what somebody was told is over is still so at the end, and of all who were told that
// they settled an attempt there is one.
func verdictsStand(j *judge) {
	settledBy, startedBy := map[string]string{}, map[string]bool{}
	for _, c := range j.h.Calls {
		j.verdict(&c)
		id := c.Attempt
		switch c.Type {
		case cancelledOne, resolved:
			if first, ok := settledBy[id]; ok {
				j.broken(j.jobNamed(&c), "%s of attempt %s succeeded after a %s that did", c.Op, id, first)
			}
			settledBy[id] = c.Op
		case started:
			if c.Settled == nil {
				continue // verdict tells it
			}
			if startedBy[c.Settled.ID] {
				j.broken(j.jobNamed(&c), "two startAttempt were answered with attempt %s", c.Settled.ID)
			}
			startedBy[c.Settled.ID] = true
		}
	}
}

func (j *judge) verdict(c *Call) {
	told := ""
	if c.Settled != nil {
		told = c.Settled.State
		a := j.attempts[c.Settled.ID]
		if a == nil {
			j.broken(j.jobNamed(c), "%s was answered with attempt %s, which has no row", c.Op, c.Settled.ID)
		} else if !open(told) && a.State != told {
			j.broken(a.Job, "%s was told that attempt %s is %s; it is %s", c.Subject, a.ID, told, a.State)
		}
	}
	seen := ""
	if c.Found != nil {
		seen = c.Found.State
		if row := j.jobs[c.Found.ID]; row != nil && (seen == succeeded || seen == cancelled) && row.State != seen {
			j.broken(row.ID, "%s was told that it is %s; it is %s", c.Subject, seen, row.State)
		}
	}
	ok := true
	switch c.Type {
	case cancelledOne:
		ok = told == cancelled && c.Settled.ID == c.Attempt
	case resolved:
		ok = told == c.Outcome && told != "" && c.Settled.ID == c.Attempt
	case attemptFinished:
		ok = told != "" && !open(told) && c.Settled.ID == c.Attempt
	case started:
		ok = told == starting
	case cancelledJob:
		ok = seen == cancelled
	case jobFinished:
		ok = seen == succeeded || seen == cancelled || (seen == failed && c.Op == OpEnd)
	}
	if !ok {
		j.broken(j.jobNamed(c), "%s was answered %s with an attempt that is %q and a job that is %q", c.Op, c.Type, told, seen)
	}
}
