package verify

// slotMoves reports whether a job's event moves the result slot, and with it the version.
func slotMoves(e Event) bool {
	return e.Type == jobState && (e.To == succeeded || e.To == failed || e.To == cancelled || e.From == failed)
}

// countedVersion is I5: the version counts the moves of the result slot and nothing else; attempts hold the one that they
// were created under.
func countedVersion(j *judge) {
	for _, job := range j.h.Jobs {
		version := 1
		j.replay(job.ID, func(e logged, before *life) {
			switch {
			case slotMoves(e.Event):
				version++
			case e.Type == attemptCreated:
				now := version
				if before.job == failed { // its own creation re-opens the job
					now++
				}
				if a := j.attempts[e.Attempt]; a != nil && a.JobVersion != now {
					j.broken(job.ID, "attempt %s was created under version %d; its row says %d", a.ID, now, a.JobVersion)
				}
			case e.Type == attemptState && e.To == superseded && !before.has(succeeded):
				j.broken(job.ID, "event %d supersedes attempt %s before any other has won", e.Number, e.Attempt)
			}
		})
		if job.Version != version {
			j.broken(job.ID, "its version is %d; by its events it is %d", job.Version, version)
		}
	}
}

func (l *life) has(state string) bool {
	for _, s := range l.attempts {
		if s == state {
			return true
		}
	}
	return false
}

// oneWinner is I6: a job that SUCCEEDED has exactly one winner, of its own; any other job has none and no result.
func oneWinner(j *judge) {
	for _, job := range j.h.Jobs {
		var winners []string
		for _, a := range j.attemptsOf[job.ID] {
			if a.State == succeeded {
				winners = append(winners, a.ID)
			}
		}
		if job.State != succeeded {
			if job.Result != nil || job.CompletedBy != "" || len(winners) > 0 {
				j.broken(job.ID, "it is %s, with the winners %v, completed by %q and the result %.100s", job.State, winners, job.CompletedBy, job.Result)
			}
			continue
		}
		if len(winners) != 1 || winners[0] != job.CompletedBy {
			j.broken(job.ID, "it is completed by %q; SUCCEEDED are %v", job.CompletedBy, winners)
		}
		if job.Result == nil {
			j.broken(job.ID, "it SUCCEEDED without a result")
		}
		a := j.attempts[job.CompletedBy]
		if a == nil || a.Job != job.ID {
			j.broken(job.ID, "it is completed by %q, which is no attempt of it", job.CompletedBy)
		} else if a.JobVersion+1 != job.Version {
			j.broken(job.ID, "attempt %s has won under version %d, and the job's is %d now", a.ID, a.JobVersion, job.Version)
		}
	}
}

// rightResult is I5: the result is what the winner brought, or what an operator gave for it.
func rightResult(j *judge) {
	for _, job := range j.h.Jobs {
		if job.Result != nil && len(j.sources(&job)) == 0 {
			j.broken(job.ID, "its result is %.200s; that is not what the provider answered to attempt %s, nor an operator's", job.Result, job.CompletedBy)
		}
	}
}

// source is where a job's result can have come from.
type source struct {
	offer   *Request
	resolve *Call
}

// sources are all offers to the winner that equal the job's result.
func (v *view) sources(job *Job) []source {
	var out []source
	for _, r := range v.requestsOf[job.CompletedBy] {
		if r.Fate == Answered && sameJSON(r.Output, job.Result) {
			out = append(out, source{offer: r})
		}
	}
	for _, c := range v.callsOf[job.ID] {
		if c.Op == OpResolve && c.Attempt == job.CompletedBy && c.Outcome == succeeded && c.Operator &&
			(!c.Answered() || c.Type == resolved) && sameJSON(c.Result, job.Result) {
			out = append(out, source{resolve: c})
		}
	}
	return out
}
