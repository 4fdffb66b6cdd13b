// Package report holds what a contract run found and how it is written down: for the gate, for people and for machines.
//
// It imports nothing of this module.
package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// ChecksVersion changes when a check changes its verdict, so that contracts are run anew.
const ChecksVersion = "2"

// Mode says what answered.
type Mode string

const (
	Live   Mode = "live"   // the real endpoint
	Record Mode = "record" // the real endpoint, and its answers were saved
	Replay Mode = "replay" // saved answers; proves the harness, never opens the gate
)

// OpensGate reports whether a pass in this mode says anything about the endpoint of today.
func (m Mode) OpensGate() bool { return m == Live || m == Record }

// Status is a check's verdict.
type Status string

const (
	Passed        Status = "PASSED"
	Failed        Status = "FAILED"
	NotApplicable Status = "NOT_APPLICABLE" // cannot be shown at this target or says nothing for this task; does not close the gate
	NotRun        Status = "NOT_RUN"        // could not be judged, since another check failed before it; never part of a pass
)

// The checks. Each is part of every result.
const (
	CheckSchema    = "schema"     // every output keeps the task's output schema and has no undeclared key
	CheckStructure = "structure"  // at low temperature the set of (path, type) is the golden's
	CheckPrompt    = "prompt"     // the prompt renders, fits, and passes the provider's tokenizer unharmed
	CheckSystem    = "system"     // the system prompt is obeyed
	CheckMeaning   = "meaning"    // the case's assertions hold
	CheckRoundTrip = "round_trip" // the case as a real job, read back, is what the provider answered
	CheckFaults    = "faults"     // this provider's failures are classified as they must be
	CheckBudget    = "budget"     // latency and cost are within the task's thresholds
)

// Checks returns the names of all checks in the order in which reports have them.
func Checks() []string {
	return []string{CheckSchema, CheckStructure, CheckPrompt, CheckSystem, CheckMeaning, CheckRoundTrip, CheckFaults, CheckBudget}
}

// Result is one run of a task's contract at one target: cases × runs × checks.
type Result struct {
	Task       string    `json:"task"`
	Target     string    `json:"target"`
	Mode       Mode      `json:"mode"`
	Runs       int       `json:"runs"` // per case
	Passed     bool      `json:"passed"`
	Basis      Basis     `json:"basis"`
	Digest     string    `json:"digest"` // Basis.Digest
	RanBy      string    `json:"ran_by"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
	TaskLabel  string    `json:"task_label"` // the version as written in task.yaml, for people
	Cases      []Case    `json:"cases"`
	Checks     []Check   `json:"checks"` // of the target as a whole
	Latency    *Latency  `json:"latency,omitempty"`
	Cost       *Cost     `json:"cost,omitempty"` // of everything that was sent
}

// Latency are percentiles over the runs that ended with an answer, nearest rank.
type Latency struct {
	P50MS int64 `json:"p50_ms"`
	P95MS int64 `json:"p95_ms"`
	MaxMS int64 `json:"max_ms"`
}

// Cost is an exact decimal.
type Cost struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Unpriced int    `json:"unpriced,omitempty"` // requests whose cost is not known and not in the amount
}

// Case is what came of one case.
type Case struct {
	Name   string  `json:"name"`
	Runs   []Run   `json:"runs"`
	Checks []Check `json:"checks"` // of the case as a whole
}

// Run is one request for one case.
type Run struct {
	Number       int     `json:"number"` // from 1
	Checks       []Check `json:"checks"`
	DurationMS   int64   `json:"duration_ms"`
	InputTokens  *int    `json:"input_tokens,omitempty"` // nil: not told
	OutputTokens *int    `json:"output_tokens,omitempty"`
	Cost         string  `json:"cost,omitempty"` // exact decimal in the currency of the target's prices
}

// Check is one verdict. Messages may quote what a target made of a case, shortened: cases are written by the task's authors.
// They never hold a key.
type Check struct {
	Name     string    `json:"name"`
	Aspect   string    `json:"aspect,omitempty"` // of checks that have several
	Status   Status    `json:"status"`
	Code     string    `json:"code,omitempty"` // the failure's code if the request failed
	Message  string    `json:"message,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one place where an output breaks a rule.
type Problem struct {
	Pointer  string `json:"pointer"` // RFC 6901, with [] for all positions of an array in structures
	Expected string `json:"expected"`
	Got      string `json:"got,omitempty"`
}

// Basis is everything that a result depends on. A pass counts for exactly this.
type Basis struct {
	TaskVersion   string `json:"task_version"`  // tasks.Definition.Digest
	CasesDigest   string `json:"cases_digest"`  //
	ConfigDigest  string `json:"config_digest"` // provider configuration and adapter version
	ChecksVersion string `json:"checks_version"`
	// Parts are what the digests are made of, for words about what changed; they decide nothing. Results of earlier versions
	// have none.
	Parts Parts `json:"parts,omitempty"`
}

// Digest is "sha256:" and 64 hex digits over the basis and the target.
func (b Basis) Digest(target string) string {
	raw, err := json.Marshal([]string{target, b.TaskVersion, b.CasesDigest, b.ConfigDigest, b.ChecksVersion})
	if err != nil {
		panic(err) // strings always marshal
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Full is the check's name with its aspect, as in system/format.
func (c Check) Full() string {
	if c.Aspect == "" {
		return c.Name
	}
	return c.Name + "/" + c.Aspect
}

// Place is a check and where it stands. Case is empty for the target as a whole, Run 0 for a case as a whole.
type Place struct {
	Case  string
	Run   int
	Check Check
}

func (p Place) String() string {
	s := ""
	if p.Case != "" {
		s = fmt.Sprintf("case %q, ", p.Case)
	}
	if p.Run > 0 {
		s += fmt.Sprintf("run %d, ", p.Run)
	}
	s += "check " + p.Check.Full() + ": "
	if p.Check.Code != "" {
		s += p.Check.Code + ": "
	}
	return s + p.Check.Message
}

// All lists every check: case by case, within each its runs and then its own, and the target's at last.
func (r Result) All() []Place {
	var out []Place
	for _, c := range r.Cases {
		for _, run := range c.Runs {
			for _, check := range run.Checks {
				out = append(out, Place{Case: c.Name, Run: run.Number, Check: check})
			}
		}
		for _, check := range c.Checks {
			out = append(out, Place{Case: c.Name, Check: check})
		}
	}
	for _, check := range r.Checks {
		out = append(out, Place{Check: check})
	}
	return out
}

// Failures lists every failed check in the order of All.
func (r Result) Failures() []Place {
	return slices.DeleteFunc(r.All(), func(p Place) bool { return p.Check.Status != Failed })
}

// Summary is the verdict on one check over all cases and runs, Failed before NotRun before Passed before NotApplicable. A
// check that a result does not have is NotRun.
func (r Result) Summary(check string) Status {
	var s Status
	for _, p := range r.All() {
		if p.Check.Name == check {
			s = worse(s, p.Check.Status)
		}
	}
	return cmp.Or(s, NotRun)
}

// Judge sets Passed and Digest from what was measured. A pass has every check, none of them Failed or NotRun, and every run of
// every case kept the schema: what measured nothing has not passed.
func (r *Result) Judge() {
	r.Digest = r.Basis.Digest(r.Target)
	r.Passed = len(r.Cases) > 0
	worst := map[string]Status{}
	for _, p := range r.All() { // also what this version has no name for
		worst[p.Check.Name] = worse(worst[p.Check.Name], p.Check.Status)
		r.Passed = r.Passed && (p.Check.Status == Passed || p.Check.Status == NotApplicable)
	}
	for _, name := range Checks() {
		s := worst[name]
		r.Passed = r.Passed && (s == Passed || s == NotApplicable && name != CheckSchema)
	}
	for _, c := range r.Cases {
		r.Passed = r.Passed && len(c.Runs) > 0 && len(c.Runs) == r.Runs
		for _, run := range c.Runs {
			r.Passed = r.Passed && slices.ContainsFunc(run.Checks, func(c Check) bool { return c.Name == CheckSchema && c.Status == Passed })
		}
	}
}
