package verify

import (
	"iter"
	"strings"
)

// markPrefix begins every mark; digits and markEnd follow.
const (
	markPrefix = "mark-"
	markEnd    = 'x'
)

// marksIn finds all marks in a text, in one pass.
func marksIn(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			at := strings.Index(text, markPrefix)
			if at < 0 {
				return
			}
			text = text[at:]
			end := len(markPrefix)
			for end < len(text) && text[end] >= '0' && text[end] <= '9' {
				end++
			}
			if end > len(markPrefix) && end < len(text) && text[end] == markEnd {
				end++
				if !yield(text[:end]) {
					return
				}
			}
			text = text[end:]
		}
	}
}

// markOwner is who a mark is known from.
type markOwner struct {
	job, attempt string
	kept         bool // it is in the job's result
}

// droppedStaysDropped is I5: what did not win is stored nowhere. Every answer carries a mark of its own, so a mark in the
// database that is in no result is a payload that was kept.
func droppedStaysDropped(j *judge) {
	owners := map[string]*markOwner{}
	learn := func(mark, attempt string) {
		a := j.attempts[attempt]
		if a == nil {
			return // I9 tells it
		}
		job := j.jobs[a.Job]
		o := &markOwner{job: a.Job, attempt: attempt}
		o.kept = job != nil && job.CompletedBy == attempt && strings.Contains(string(job.Result), mark)
		if known := owners[mark]; known == nil || !known.kept {
			owners[mark] = o
		}
	}
	for _, r := range j.h.Requests {
		if r.Mark == "" {
			if r.Fate == Answered {
				j.broken("", "the answer to attempt %s has no mark, so it cannot be looked for", r.Attempt)
			}
			continue
		}
		found := ""
		for m := range marksIn(r.Mark) {
			found = m
		}
		if found != r.Mark || !strings.Contains(string(r.Output), r.Mark) {
			j.broken("", "the mark %q of attempt %s cannot be looked for: it is not %s<digits>%c, or not in the output", r.Mark, r.Attempt, markPrefix, markEnd)
			continue
		}
		learn(r.Mark, r.Attempt)
	}
	for _, c := range j.h.Calls {
		if c.Op == OpResolve {
			for m := range marksIn(string(c.Result)) {
				learn(m, c.Attempt)
			}
		}
	}
	seen := map[string]bool{}
	for m := range marksIn(j.h.Everything) {
		o := owners[m]
		if o == nil || seen[m] { // of an input, say
			continue
		}
		seen[m] = true
		if !o.kept {
			j.broken(o.job, "%s, which attempt %s brought, is in the database and not in the job's result", m, o.attempt)
		}
	}
	// The other way round, so that an empty dump is not a clean one.
	for _, r := range j.h.Requests {
		if o := owners[r.Mark]; o != nil && o.kept && !seen[r.Mark] {
			seen[r.Mark] = true
			j.broken(o.job, "%s is in its result and not in the text of all rows: dropped payloads cannot be looked for there", r.Mark)
		}
	}
}
