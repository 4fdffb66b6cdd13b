// Package verify judges what a campaign left behind: what its clients were answered, what the database holds and what the
// provider itself saw. It knows the rules (I1 to I13 in docs/state-machine.md) and none of the code that keeps them.
//
// It imports nothing of this module.
package verify

import (
	"encoding/json"
	"math"
	"time"
)

// Never is the end of what had no answer: it may take effect at any time until the end, or not at all.
const Never = time.Duration(math.MaxInt64)

// History is all of one run. Times are on one monotonic clock, from the start of the run.
type History struct {
	Calls    []Call    // of the API, in any order
	Streams  []Stream  // of jobEvents
	Requests []Request // the provider's own log, in its order

	Jobs     []Job
	Attempts []Attempt
	Events   []Event // by job and number

	Proved     map[string]bool // targets whose contracts have passed
	MayRace    map[string]bool // tasks that allow racing
	Conforms   func(task string, output json.RawMessage) error
	Resting    bool   // the run waited for the end of all that moves by itself
	Everything string // every row of every table as text
}

// Operations of calls.
const (
	OpCreate  = "createJob"
	OpStart   = "startAttempt"
	OpCancel  = "cancelAttempt"
	OpResolve = "resolveAttempt"
	OpEnd     = "cancelJob"
	OpRead    = "job"
	OpByKey   = "jobByKey"
	OpNode    = "node"
)

// Call is one call of the API as its client saw it.
type Call struct {
	Start, End time.Duration // End is Never without an answer: the connection broke, or a top-level error leaves it open
	Subject    string        // who called
	Operator   bool
	Op         string

	// What was asked. Each is empty where the operation has none.
	Key     string
	Task    string          // createJob
	Input   json.RawMessage // createJob
	Job     string          // id
	Attempt string          // id
	Target  string
	Outcome string          // resolveAttempt
	Result  json.RawMessage // resolveAttempt

	// What was answered. Type is the union's member, "Job" or "Attempt" for something that was found, "null" for nothing
	// found, "" without an answer.
	Type      string
	Code      string // of a UserError or of a top-level error
	Replayed  bool
	Found     *Seen        // the job in the answer
	Settled   *SeenAttempt // the attempt in the answer (blockedBy of AttemptBlocked)
	Transport string       // why there is no answer
}

// Answered reports whether the server's answer came.
func (c Call) Answered() bool { return c.End != Never }

// Seen is a job's row in an answer. All of it was read at once.
type Seen struct {
	ID, Key, Owner, Task, State string
	Version                     int
	Input, Result               json.RawMessage // Result is nil when it is null
	CompletedBy                 string          // id or empty
}

// SeenAttempt is an attempt in an answer.
type SeenAttempt struct{ ID, State string }

// Stream is what one subscriber of jobEvents got, over any number of connections: it resumes after the last number it has.
type Stream struct {
	Job      string
	After    int // the first subscription's
	Events   []Event
	Complete bool // the server said that the job is over
}

// Fate is what the provider did with a request.
type Fate string

const (
	Answered  Fate = "answered"  // it sent a complete, valid answer, perhaps late
	Broken    Fate = "broken"    // it sent a complete answer that breaks the output schema or is none
	Refused   Fate = "refused"   // it sent a definite no
	Ambiguous Fate = "ambiguous" // it fell silent, cut the connection or answered with what a middle box might answer
	Cut       Fate = "cut"       // the request itself never came to its end
)

// Request is one request that reached the provider.
type Request struct {
	At, End time.Duration // End is Never if it was never answered
	Attempt string        // the idempotency key that it carried
	Target  string
	Whole   bool // the body came to its end
	Fate    Fate
	Output  json.RawMessage // Answered and Broken: the document, unique to this request
	Mark    string          // a text that is in this output and nowhere else
}

// Job is a row at the end.
type Job struct {
	ID, Owner, Key, Task, Target, State string
	Fallbacks                           []string
	Version, LastEvent                  int
	Input, Result                       json.RawMessage // Result is nil when there is none
	CompletedBy                         string
}

// Attempt is a row at the end.
type Attempt struct {
	ID, Job, Target, Reason, State, Code string
	Number, JobVersion                   int
	Sent                                 bool
}

// Event is a row at the end, or one that a subscriber was told.
type Event struct {
	Job      string
	Number   int
	Type     string
	Attempt  string // id or empty
	From, To string
	Detail   json.RawMessage
}

// Violation is one broken rule.
type Violation struct {
	Rule string // "I1" to "I13", or "result slot"
	Job  string // id, or empty
	Text string
	More int // stands for so many more of the rule, which are not told one by one
}

func (v Violation) String() string {
	if v.Job == "" {
		return v.Rule + ": " + v.Text
	}
	return v.Rule + " at " + v.Job + ": " + v.Text
}
