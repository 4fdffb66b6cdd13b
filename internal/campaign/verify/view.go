package verify

import (
	"encoding/json"
	"slices"
)

// view is a history with its indexes. Everything keeps the history's order, so that what is found does not depend on maps.
type view struct {
	h *History

	jobs       map[string]*Job
	attempts   map[string]*Attempt
	attemptsOf map[string][]*Attempt // by job
	eventsOf   map[string][]logged   // by job, by number
	requestsOf map[string][]*Request // by attempt
	callsOf    map[string][]*Call    // by job, of whatever names it

	keys     []*keyUse
	keysOf   map[ownedKey]*keyUse
	operator map[string]bool // subjects that called as operators
}

// logged is an event with its detail read.
type logged struct {
	Event
	detail detail
}

// detail is what the rules look at in an event's free part.
type detail struct {
	Code, By, Target, Reason string
	Operator                 bool
}

type ownedKey struct{ owner, key string }

// keyUse is everything about one key of one owner.
type keyUse struct {
	ownedKey
	creates, lookups []*Call
	rows             []*Job
}

func newView(h *History) *view {
	v := &view{
		h: h, jobs: map[string]*Job{}, attempts: map[string]*Attempt{}, attemptsOf: map[string][]*Attempt{},
		eventsOf: map[string][]logged{}, requestsOf: map[string][]*Request{}, callsOf: map[string][]*Call{},
		keysOf: map[ownedKey]*keyUse{}, operator: map[string]bool{},
	}
	for i := range h.Jobs {
		job := &h.Jobs[i]
		v.jobs[job.ID] = job
		k := v.key(job.Owner, job.Key)
		k.rows = append(k.rows, job)
	}
	for i := range h.Attempts {
		a := &h.Attempts[i]
		v.attempts[a.ID] = a
		v.attemptsOf[a.Job] = append(v.attemptsOf[a.Job], a)
	}
	for _, as := range v.attemptsOf {
		slices.SortStableFunc(as, func(a, b *Attempt) int { return a.Number - b.Number })
	}
	for _, e := range h.Events {
		l := logged{Event: e}
		// What cannot be read is left empty; wellFormed tells it.
		_ = json.Unmarshal(e.Detail, &l.detail)
		v.eventsOf[e.Job] = append(v.eventsOf[e.Job], l)
	}
	for _, es := range v.eventsOf {
		slices.SortStableFunc(es, func(a, b logged) int { return a.Number - b.Number })
	}
	for i := range h.Requests {
		r := &h.Requests[i]
		v.requestsOf[r.Attempt] = append(v.requestsOf[r.Attempt], r)
	}
	for i := range h.Calls {
		v.index(&h.Calls[i])
	}
	return v
}

func (v *view) index(c *Call) {
	if c.Operator {
		v.operator[c.Subject] = true
	}
	switch c.Op {
	case OpCreate:
		k := v.key(c.Subject, c.Key)
		k.creates = append(k.creates, c)
	case OpByKey:
		k := v.key(c.Subject, c.Key)
		k.lookups = append(k.lookups, c)
	}
	ids := []string{v.jobNamed(c)}
	if c.Found != nil && c.Found.ID != ids[0] {
		ids = append(ids, c.Found.ID)
	}
	for _, id := range ids {
		if id != "" {
			v.callsOf[id] = append(v.callsOf[id], c)
		}
	}
}

// jobNamed is the job that a call asked for by its id or an attempt's, or "".
func (v *view) jobNamed(c *Call) string {
	if c.Job != "" {
		return c.Job
	}
	if a := v.attempts[c.Attempt]; a != nil {
		return a.Job
	}
	return ""
}

func (v *view) key(owner, key string) *keyUse {
	o := ownedKey{owner, key}
	k := v.keysOf[o]
	if k == nil {
		k = &keyUse{ownedKey: o}
		v.keysOf[o] = k
		v.keys = append(v.keys, k)
	}
	return k
}

// wellFormed looks at what the other rules take for granted.
func wellFormed(j *judge) {
	for i := range j.h.Jobs {
		if job := &j.h.Jobs[i]; j.jobs[job.ID] != job {
			j.broken(job.ID, "two rows have this id")
		}
	}
	for i := range j.h.Attempts {
		if a := &j.h.Attempts[i]; j.attempts[a.ID] != a {
			j.broken(a.Job, "two rows have the attempt id %s", a.ID)
		}
		if a := j.h.Attempts[i]; j.jobs[a.Job] == nil {
			j.broken(a.Job, "attempt %s is of a job that has no row", a.ID)
		}
	}
	for _, e := range j.h.Events {
		if len(e.Detail) > 0 && json.Unmarshal(e.Detail, &detail{}) != nil {
			j.broken(e.Job, "event %d has a detail that cannot be read: %.200s", e.Number, e.Detail)
		}
		if j.jobs[e.Job] == nil {
			j.broken(e.Job, "event %d is of a job that has no row", e.Number)
		}
	}
	for i, c := range j.h.Calls {
		if c.End < c.Start {
			j.broken("", "call %d (%s) ends before it starts", i, c.Op)
		}
		if !c.Answered() && (c.Type != "" || c.Found != nil || c.Settled != nil) {
			j.broken("", "call %d (%s) has no answer and a %s", i, c.Op, c.Type)
		}
	}
}
