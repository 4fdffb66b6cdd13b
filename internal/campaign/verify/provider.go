package verify

// sentOnce is I9: the provider saw no attempt twice, none that was not marked as sent, and everything that is said to
// have reached it.
func sentOnce(j *judge) {
	seen := map[string]bool{}
	for _, r := range j.h.Requests {
		a := j.attempts[r.Attempt]
		switch {
		case a == nil:
			j.broken("", "the provider got a request of attempt %q, which has no row", r.Attempt)
			continue
		case seen[r.Attempt]:
			j.broken(a.Job, "the provider got attempt %s more than once", a.ID)
		case !a.Sent:
			j.broken(a.Job, "the provider got attempt %s, whose row does not say that it was sent", a.ID)
		}
		seen[r.Attempt] = true
		if a.Target != r.Target {
			j.broken(a.Job, "the provider got attempt %s at %s; its row says %s", a.ID, r.Target, a.Target)
		}
	}
	for _, e := range j.h.Events {
		if e.Type != attemptState {
			continue
		}
		a := j.attempts[e.Attempt]
		if a == nil {
			continue // I7 tells it
		}
		if (e.To == running || e.To == unknown || e.To == succeeded) && !a.Sent {
			j.broken(e.Job, "attempt %s was %s, and its row does not say that it was sent", a.ID, e.To)
		}
		if e.To == running && !seen[a.ID] {
			j.broken(e.Job, "attempt %s was acknowledged, and the provider never got it", a.ID)
		}
	}
}
