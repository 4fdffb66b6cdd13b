package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// decideWithin bounds the search for one job. After undecidedMost that it could not decide, no more are tried.
const (
	decideWithin  = 2 * time.Second
	undecidedMost = 5
)

// slot is what a job's result slot holds. Versions only grow, so no two moments of a job's life share one.
type slot struct {
	version        int
	kind           string // open, or the job's state if that is SUCCEEDED, FAILED or CANCELLED
	winner, result string
}

const openSlot = "open"

func slotOf(version int, state, winner string, result []byte) slot {
	s := slot{version: version, kind: openSlot, winner: winner}
	if jobOver(state) {
		s.kind = state
	}
	if result != nil {
		s.result = canonical(result)
	}
	return s
}

func (s slot) String() string {
	out := fmt.Sprintf("version %d %s", s.version, s.kind)
	if s.winner != "" || s.result != "" {
		out += fmt.Sprintf(" by %s with %.60s", s.winner, s.result)
	}
	return out
}

// slotOp is one operation on the slot: it wants the slot as from says and leaves it as next says.
type slotOp struct {
	what  string
	start time.Duration
	end   time.Duration
	step  func(slot) (slot, bool)
}

// slotModel is the sequential object that a result slot must look like.
var slotModel = porcupine.Model{
	Init: func() any { return slot{version: 1, kind: openSlot} },
	Step: func(state, input, _ any) (bool, any) {
		next, ok := input.(slotOp).step(state.(slot))
		return ok, next
	},
}

// linearSlot is the rule of the result slot: there is one order of all that was seen and done, within the times of the calls,
// in which every answer is what a single slot would say: it is taken once, by one winner, with one result, and after that,
// or after the job's cancellation, never looks otherwise.
func linearSlot(j *judge) {
	end := time.Duration(0)
	for _, c := range j.h.Calls {
		end = max(end, c.Start)
		if c.Answered() {
			end = max(end, c.End)
		}
	}
	for _, r := range j.h.Requests {
		end = max(end, r.At)
	}
	undecided := 0
	for i := range j.h.Jobs {
		job := &j.h.Jobs[i]
		if undecided == undecidedMost {
			j.broken("", "not decided: %d jobs were not tried, since %d before took longer than %v each", len(j.h.Jobs)-i, undecided, decideWithin)
			return
		}
		ops := j.slotOps(job, end+1)
		history := make([]porcupine.Operation, len(ops))
		for i, op := range ops {
			history[i] = porcupine.Operation{ClientId: i, Input: op, Call: int64(op.start), Return: int64(op.end)}
		}
		result := porcupine.CheckOperationsTimeout(slotModel, history, decideWithin)
		if text := slotVerdict(result, ops); text != "" {
			j.broken(job.ID, "%s", text)
		}
		if result == porcupine.Unknown {
			undecided++
		}
	}
}

func slotVerdict(result porcupine.CheckResult, ops []slotOp) string {
	switch result {
	case porcupine.Ok:
		return ""
	case porcupine.Unknown:
		return fmt.Sprintf("not decided within %v: %d operations", decideWithin, len(ops))
	default:
		slices.SortStableFunc(ops, func(a, b slotOp) int { return cmp.Compare(a.start, b.start) })
		var b strings.Builder
		b.WriteString("no order explains what was seen:")
		for _, op := range ops {
			until := "ever"
			if op.end != Never {
				until = op.end.String()
			}
			fmt.Fprintf(&b, "\n%v to %s: %s", op.start, until, op.what)
		}
		return b.String()
	}
}

// slotOps are the operations on one job's slot. Those whose time or effect nobody knows are taken as the log has them, which
// makes the model stricter: a sight of anything that the log does not have is explained by nothing.
func (j *judge) slotOps(job *Job, end time.Duration) []slotOp {
	ops := j.logged(job)
	reopenedBy := j.reopenings(job)
	reads := newReads()
	for _, c := range j.callsOf[job.ID] {
		var saw *slot
		if c.Found != nil && c.Found.ID == job.ID {
			f := c.Found
			s := slotOf(f.Version, f.State, f.CompletedBy, f.Result)
			saw = &s
		}
		mine := j.jobNamed(c) == job.ID
		switch {
		case mine && c.Type == cancelledJob:
			ops = append(ops, closing(c.Start, c.End, saw))
		case mine && c.Type == resolved && c.Outcome == succeeded:
			ops = append(ops, j.taking(c.Attempt, canonical(c.Result), c.Start, c.End, saw))
		case mine && c.Type == started && c.Settled != nil && reopenedBy[c.Settled.ID] > 0:
			ops = append(ops, moving("startAttempt re-opens it", failed, openSlot, reopenedBy[c.Settled.ID], c.Start, c.End, saw))
			delete(reopenedBy, c.Settled.ID)
		case saw != nil:
			reads.add(c, *saw)
		}
	}
	for _, a := range j.attemptsOf[job.ID] { // what is left, nobody was answered
		version, start := reopenedBy[a.ID], j.firstUnanswered(job, OpStart)
		if version > 0 && start != Never {
			ops = append(ops, moving("a startAttempt without an answer re-opens it", failed, openSlot, version, start, Never, nil))
		}
	}
	ops = append(ops, reads.ops()...)
	row := slotOf(job.Version, job.State, job.CompletedBy, job.Result)
	return append(ops, reading("its row at the end", row, end, Never))
}

// logged are the moves that the log has and that no answer tells.
func (j *judge) logged(job *Job) []slotOp {
	var ops []slotOp
	version := 1
	for _, e := range j.eventsOf[job.ID] {
		if !slotMoves(e.Event) {
			continue
		}
		switch {
		case e.To == failed:
			ops = append(ops, moving("the job fails", openSlot, failed, version, 0, Never, nil))
		case e.To == cancelled && !j.answered(job, cancelledJob, ""):
			if start := j.firstUnanswered(job, OpEnd); start != Never {
				ops = append(ops, closing(start, Never, nil))
			}
		case e.To == succeeded && !j.answered(job, resolved, succeeded):
			start := Never
			for _, s := range j.sources(job) {
				if s.offer != nil {
					start = min(start, s.offer.At)
				} else {
					start = min(start, s.resolve.Start)
				}
			}
			if start != Never {
				ops = append(ops, j.taking(job.CompletedBy, canonical(job.Result), start, Never, nil))
			}
		}
		version++
	}
	return ops
}

// reopenings are the versions that a FAILED job had when the creation of an attempt re-opened it.
func (j *judge) reopenings(job *Job) map[string]int {
	out := map[string]int{}
	version, last := 1, ""
	for _, e := range j.eventsOf[job.ID] {
		if e.Type == attemptCreated {
			last = e.Attempt
		}
		if e.Type == jobState && e.From == failed {
			out[last] = version
		}
		if slotMoves(e.Event) {
			version++
		}
	}
	return out
}

// answered reports whether somebody was told that a mutation of that kind succeeded.
func (j *judge) answered(job *Job, kind, outcome string) bool {
	return slices.ContainsFunc(j.callsOf[job.ID], func(c *Call) bool {
		return c.Type == kind && c.Outcome == outcome && j.jobNamed(c) == job.ID
	})
}

// firstUnanswered is when the first call of that kind without an answer began, or Never.
func (j *judge) firstUnanswered(job *Job, op string) time.Duration {
	first := Never
	for _, c := range j.callsOf[job.ID] {
		if c.Op == op && !c.Answered() && j.jobNamed(c) == job.ID {
			first = min(first, c.Start)
		}
	}
	return first
}

// moving leads from one kind to another, at the version that it had.
func moving(what, from, to string, version int, start, end time.Duration, saw *slot) slotOp {
	return slotOp{fmt.Sprintf("%s at version %d%s", what, version, told(saw)), start, end, func(s slot) (slot, bool) {
		next := slot{version: s.version + 1, kind: to}
		return next, s.kind == from && s.version == version && (saw == nil || *saw == next)
	}}
}

// closing ends the job by hand, unless it is over.
func closing(start, end time.Duration, saw *slot) slotOp {
	return slotOp{"cancelJob ends it" + told(saw), start, end, func(s slot) (slot, bool) {
		next := slot{version: s.version + 1, kind: cancelled}
		return next, s.kind == openSlot && (saw == nil || *saw == next)
	}}
}

// taking is the claim: of an empty slot, and only of the life that the attempt belongs to.
func (j *judge) taking(attempt, result string, start, end time.Duration, saw *slot) slotOp {
	version := 0
	if a := j.attempts[attempt]; a != nil {
		version = a.JobVersion
	}
	return slotOp{fmt.Sprintf("attempt %s of version %d takes it with %.60s%s", attempt, version, result, told(saw)), start, end,
		func(s slot) (slot, bool) {
			next := slot{version: s.version + 1, kind: succeeded, winner: attempt, result: result}
			return next, s.kind == openSlot && s.version == version && (saw == nil || *saw == next)
		}}
}

func reading(what string, saw slot, start, end time.Duration) slotOp {
	return slotOp{what + " says " + saw.String(), start, end, func(s slot) (slot, bool) { return s, s == saw }}
}

func told(saw *slot) string {
	if saw == nil {
		return ""
	}
	return " and says " + saw.String()
}

// reads are the looks at one slot. All that saw the same must fall into one stretch of time, since versions only grow; such
// a stretch suits all of them exactly if it suits the one that ended first and the one that started last. So those two stand
// for all, and a job that a thousand looked at is as quickly decided as one that two did.
type reads struct {
	seen  []slot
	first map[slot]*Call
	last  map[slot]*Call
}

func newReads() *reads { return &reads{first: map[slot]*Call{}, last: map[slot]*Call{}} }

func (r *reads) add(c *Call, s slot) {
	if r.first[s] == nil {
		r.seen = append(r.seen, s)
		r.first[s], r.last[s] = c, c
	}
	if c.End < r.first[s].End {
		r.first[s] = c
	}
	if c.Start > r.last[s].Start {
		r.last[s] = c
	}
}

func (r *reads) ops() []slotOp {
	var out []slotOp
	for _, s := range r.seen {
		first, last := r.first[s], r.last[s]
		out = append(out, reading(first.Op+" of "+first.Subject, s, first.Start, first.End))
		if last != first {
			out = append(out, reading(last.Op+" of "+last.Subject, s, last.Start, last.End))
		}
	}
	return out
}
