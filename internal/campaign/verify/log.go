package verify

// Types of events.
const (
	jobCreated      = "JOB_CREATED"
	jobState        = "JOB_STATE"
	attemptCreated  = "ATTEMPT_CREATED"
	attemptState    = "ATTEMPT_STATE"
	attemptRequeued = "ATTEMPT_REQUEUED"
	attemptResent   = "ATTEMPT_RESENT"
	fallbackSkipped = "FALLBACK_SKIPPED"
)

// States. Jobs and attempts share some names.
const (
	queued     = "QUEUED"
	waiting    = "WAITING"
	starting   = "STARTING"
	running    = "RUNNING"
	unknown    = "UNKNOWN"
	succeeded  = "SUCCEEDED"
	failed     = "FAILED"
	cancelled  = "CANCELLED"
	superseded = "SUPERSEDED"
)

// life is what a job's log says up to some event.
type life struct {
	job      string            // state, "" before the first event
	attempts map[string]string // states
	order    []string          // of creation
}

func (l *life) apply(e Event) {
	switch e.Type {
	case jobCreated, jobState:
		l.job = e.To
	case attemptCreated, attemptState:
		if _, ok := l.attempts[e.Attempt]; !ok {
			l.order = append(l.order, e.Attempt)
		}
		l.attempts[e.Attempt] = e.To
	}
}

// openOne returns the first attempt that is open, or "".
func (l *life) openOne() string {
	for _, id := range l.order {
		if open(l.attempts[id]) {
			return id
		}
	}
	return ""
}

func open(state string) bool { return state == starting || state == running || state == unknown }

// jobOver reports whether streams of a job in this state end.
func jobOver(state string) bool { return state == succeeded || state == failed || state == cancelled }

// replay shows every event of a job with what the log said before it.
func (v *view) replay(job string, visit func(e logged, before *life)) *life {
	l := &life{attempts: map[string]string{}}
	for _, e := range v.eventsOf[job] {
		visit(e, l)
		l.apply(e.Event)
	}
	return l
}

// numberedLog is I7: events of a job are numbered from 1 to its last without gaps.
func numberedLog(j *judge) {
	for _, job := range j.h.Jobs {
		es := j.eventsOf[job.ID]
		for i, e := range es {
			if e.Number != i+1 {
				j.broken(job.ID, "event %d is numbered %d", i+1, e.Number)
				break
			}
		}
		if len(es) != job.LastEvent {
			j.broken(job.ID, "its row says that there are %d events; there are %d", job.LastEvent, len(es))
		}
	}
}

// replayedLog is I7: every change has its event, so the events alone give the rows.
func replayedLog(j *judge) {
	for _, job := range j.h.Jobs {
		end := j.replay(job.ID, func(e logged, before *life) { j.follows(job.ID, e, before) })
		if end.job != job.State {
			j.broken(job.ID, "the events end with the job in state %q, its row says %s", end.job, job.State)
		}
		for _, id := range end.order {
			if a := j.attempts[id]; a == nil || a.Job != job.ID {
				j.broken(job.ID, "its events tell of attempt %s, and it has no such row", id)
			}
		}
		for _, a := range j.attemptsOf[job.ID] {
			switch state, ok := end.attempts[a.ID]; {
			case !ok:
				j.broken(job.ID, "attempt %s has a row and no event", a.ID)
			case state != a.State:
				j.broken(job.ID, "the events end with attempt %s in state %s, its row says %s", a.ID, state, a.State)
			}
		}
		for i, a := range j.attemptsOf[job.ID] {
			if a.Number != i+1 || i >= len(end.order) || end.order[i] != a.ID {
				j.broken(job.ID, "attempt %s has number %d; by rows it comes %d., or the events tell another order", a.ID, a.Number, i+1)
			}
		}
	}
}

// follows checks that an event starts from where the log was.
func (j *judge) follows(job string, e logged, before *life) {
	state, there := before.attempts[e.Attempt]
	switch e.Type {
	case jobCreated:
		if e.Number != 1 || before.job != "" || e.From != "" {
			j.broken(job, "event %d says from %q that the job was created; that is for the first event alone", e.Number, e.From)
		}
	case jobState:
		if e.From != before.job || e.From == e.To {
			j.broken(job, "event %d moves the job from %q to %q; it was %q", e.Number, e.From, e.To, before.job)
		}
	case attemptCreated:
		if there || e.From != "" || e.To != starting || e.Attempt == "" {
			j.broken(job, "event %d creates attempt %s from %q in state %q; it was %q", e.Number, e.Attempt, e.From, e.To, state)
		}
	case attemptState:
		if !there || e.From != state || e.From == e.To {
			j.broken(job, "event %d moves attempt %s from %q to %q; it was %q", e.Number, e.Attempt, e.From, e.To, state)
		}
	case attemptRequeued:
		if state != starting || e.From != "" || e.To != "" {
			j.broken(job, "event %d gives attempt %s to another worker; it was %q", e.Number, e.Attempt, state)
		}
	case attemptResent:
		if state != unknown || e.From != "" || e.To != "" {
			j.broken(job, "event %d sends attempt %s again; it was %q", e.Number, e.Attempt, state)
		}
	case fallbackSkipped:
		if e.From != "" || e.To != "" {
			j.broken(job, "event %d skips a fallback and moves something", e.Number)
		}
	default:
		j.broken(job, "event %d has the unknown type %q", e.Number, e.Type)
	}
}

// deliveredLog is I7 as subscribers see it: what came is one piece of the log, and complete only at the job's end.
func deliveredLog(j *judge) {
	for i, s := range j.h.Streams {
		es := j.eventsOf[s.Job]
		ok := true
		for n, got := range s.Events {
			want := s.After + n + 1
			if got.Number != want {
				j.broken(s.Job, "stream %d got event %d where %d was next", i, got.Number, want)
				ok = false
				break
			}
			if got.Job != s.Job && got.Job != "" {
				j.broken(s.Job, "stream %d got an event of job %s", i, got.Job)
			}
			if want < 1 || want > len(es) {
				j.broken(s.Job, "stream %d got event %d; the log has %d", i, want, len(es))
				ok = false
				break
			}
			if is := es[want-1].Event; got.Type != is.Type || got.Attempt != is.Attempt || got.From != is.From || got.To != is.To {
				j.broken(s.Job, "stream %d got event %d as (%s, %s, %q to %q); the log has (%s, %s, %q to %q)",
					i, want, got.Type, got.Attempt, got.From, got.To, is.Type, is.Attempt, is.From, is.To)
			}
		}
		if !s.Complete || !ok {
			continue
		}
		l := &life{attempts: map[string]string{}}
		for _, e := range es[:min(max(s.After, 0)+len(s.Events), len(es))] {
			l.apply(e.Event)
		}
		if !jobOver(l.job) {
			j.broken(s.Job, "stream %d was complete after event %d, when the job was %q", i, s.After+len(s.Events), l.job)
		}
	}
}
