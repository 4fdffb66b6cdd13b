package verify

import "slices"

// Types of answers.
const (
	created      = "CreateJobSuccess"
	conflict     = "IdempotencyConflict"
	foundJob     = "Job"
	foundAttempt = "Attempt"
	foundNothing = "null"
	notFound     = "NotFound"
)

// oneJobPerKey is I1: a key of an owner names one job, whoever asks, and what was acknowledged is there.
func oneJobPerKey(j *judge) {
	for _, k := range j.keys {
		if len(k.rows) > 1 {
			j.broken(k.rows[1].ID, "%s has two jobs for key %q; the other is %s", k.owner, k.key, k.rows[0].ID)
		}
		j.oneName(k)
		j.oneCreation(k)
		j.neverForgotten(k)
	}
}

// saysJob reports whether an answer says that the key has a job.
func saysJob(c *Call) bool {
	return c.Found != nil && (c.Type == created || c.Type == conflict || c.Type == foundJob)
}

// oneName compares every answer with the first one and with the row.
func (j *judge) oneName(k *keyUse) {
	first := ""
	for _, c := range slices.Concat(k.creates, k.lookups) {
		if (c.Type == created || c.Type == conflict || c.Type == foundJob) && c.Found == nil {
			j.broken("", "%s of %s for key %q was answered %s without a job", c.Op, k.owner, k.key, c.Type)
		}
		if !saysJob(c) {
			continue
		}
		f := c.Found
		if first == "" {
			first = f.ID
		}
		if f.ID != first {
			j.broken(f.ID, "key %q of %s is this job in one answer and %s in another", k.key, k.owner, first)
		}
		if f.Owner != k.owner || f.Key != k.key {
			j.broken(f.ID, "%s of %s for key %q was answered with the job of %s and key %q", c.Op, k.owner, k.key, f.Owner, f.Key)
		}
		row := j.jobs[f.ID]
		switch {
		case row == nil:
			j.broken(f.ID, "%s of %s for key %q was answered %s and there is no row", c.Op, k.owner, k.key, c.Type)
		case row.Owner != f.Owner || row.Key != f.Key || row.Task != f.Task || !sameJSON(row.Input, f.Input):
			j.broken(f.ID, "its row is (%s, %q, %s, %.100s), an answer said (%s, %q, %s, %.100s)",
				row.Owner, row.Key, row.Task, row.Input, f.Owner, f.Key, f.Task, f.Input)
		}
	}
}

// oneCreation: one call has made the job, it is the only one that says so, and nobody met the job before it began.
func (j *judge) oneCreation(k *keyUse) {
	var makers, open []*Call
	for _, c := range k.creates {
		switch {
		case !c.Answered():
			open = append(open, c)
		case c.Type == created && !c.Replayed:
			makers = append(makers, c)
		}
	}
	if len(makers) > 1 {
		j.broken(idOf(makers[1]), "%d answers for key %q of %s say that they made the job", len(makers), k.key, k.owner)
		return
	}
	could := open // who may have made it
	if len(makers) == 1 {
		could = makers
	}
	for _, c := range slices.Concat(k.creates, k.lookups) {
		if !saysJob(c) {
			continue
		}
		if !slices.ContainsFunc(could, func(m *Call) bool { return m.Start <= c.End }) {
			j.broken(c.Found.ID, "%s for key %q of %s was answered %s although no createJob that can have made the job had begun",
				c.Op, k.key, k.owner, c.Type)
			return
		}
	}
	if len(k.rows) > 0 && len(could) == 0 {
		j.broken(k.rows[0].ID, "nobody can have made the job of key %q of %s", k.key, k.owner)
	}
}

// neverForgotten: once an answer said that the key has a job, no later one says that it has none.
func (j *judge) neverForgotten(k *keyUse) {
	known := Never
	id := ""
	for _, c := range slices.Concat(k.creates, k.lookups) {
		if saysJob(c) && c.End < known {
			known, id = c.End, c.Found.ID
		}
	}
	for _, c := range k.lookups {
		if c.Type == foundNothing && c.Start > known {
			j.broken(id, "jobByKey of %s for key %q found nothing after an answer with the job", k.owner, k.key)
		}
	}
}

func idOf(c *Call) string {
	if c.Found == nil {
		return ""
	}
	return c.Found.ID
}
