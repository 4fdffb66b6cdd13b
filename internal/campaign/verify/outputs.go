package verify

// validOnly is I13: no result breaks its task's output schema.
func validOnly(j *judge) {
	for _, job := range j.h.Jobs {
		if job.Result == nil {
			continue
		}
		if j.h.Conforms == nil {
			j.broken(job.ID, "there is nothing to judge its result by")
			continue
		}
		if err := j.h.Conforms(job.Task, job.Result); err != nil {
			j.broken(job.ID, "its result is none for task %s: %v", job.Task, err)
		}
		for _, r := range j.requestsOf[job.CompletedBy] {
			if r.Fate == Broken && sameJSON(r.Output, job.Result) {
				j.broken(job.ID, "its result is an output of attempt %s that the provider broke on purpose", r.Attempt)
			}
		}
	}
}
