package jobs

import (
	"slices"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

// moves is the one table of legal moves of an attempt. Nothing leaves a terminal state.
var moves = map[attempt.State][]attempt.State{
	attempt.StateSTARTING: {
		attempt.StateRUNNING, attempt.StateFAILED, attempt.StateUNKNOWN, attempt.StateCANCELLED, attempt.StateSUCCEEDED, attempt.StateSUPERSEDED,
	},
	attempt.StateRUNNING: {
		attempt.StateSUCCEEDED, attempt.StateFAILED, attempt.StateUNKNOWN, attempt.StateCANCELLED, attempt.StateSUPERSEDED,
	},
	attempt.StateUNKNOWN: {
		attempt.StateSUCCEEDED, attempt.StateFAILED, attempt.StateCANCELLED, attempt.StateSUPERSEDED,
	},
}

// openStates are those that something may still come of.
var openStates = []attempt.State{attempt.StateSTARTING, attempt.StateRUNNING, attempt.StateUNKNOWN}

func open(a *ent.Attempt) bool { return slices.Contains(openStates, a.State) }

// sources returns the states from which an attempt may move to a state: the guard of the move's UPDATE.
func sources(to attempt.State) []attempt.State {
	var from []attempt.State
	for _, s := range openStates {
		if slices.Contains(moves[s], to) {
			from = append(from, s)
		}
	}
	return from
}

// blocks says whether a new attempt must wait for this one.
func blocks(a *ent.Attempt, raceAllowed bool) bool {
	switch a.State {
	case attempt.StateSTARTING, attempt.StateUNKNOWN:
		return true
	case attempt.StateRUNNING:
		return !raceAllowed
	default:
		return false
	}
}

// whileOpen is the state of a job that has open attempts; ok is false if it has none.
func whileOpen(attempts []*ent.Attempt) (s job.State, ok bool) {
	has := func(s attempt.State) bool {
		return slices.ContainsFunc(attempts, func(a *ent.Attempt) bool { return a.State == s })
	}
	switch {
	case has(attempt.StateRUNNING):
		return job.StateRUNNING, true
	case has(attempt.StateUNKNOWN):
		return job.StateUNKNOWN, true
	case has(attempt.StateSTARTING):
		return job.StateQUEUED, true
	default:
		return "", false
	}
}

// final reports whether the job will never get another attempt.
func final(j *ent.Job) bool { return j.State == job.StateSUCCEEDED || j.State == job.StateCANCELLED }
