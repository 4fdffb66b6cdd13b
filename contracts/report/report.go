// Package report holds what a contract run found and how it is written down: for the gate, for people and for machines.
//
// It imports nothing of this module.
package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// ChecksVersion changes when a check changes its verdict, so that contracts are run anew.
const ChecksVersion = "1"

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
	Passed Status = "PASSED"
	Failed Status = "FAILED"
)

// CheckSchema is the check that every output keeps the task's output schema and has no undeclared key.
const CheckSchema = "schema"

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
}

// Case is what came of one case.
type Case struct {
	Name string `json:"name"`
	Runs []Run  `json:"runs"`
}

// Run is one request for one case.
type Run struct {
	Number       int     `json:"number"` // from 1
	Checks       []Check `json:"checks"`
	DurationMS   int64   `json:"duration_ms"`
	InputTokens  *int    `json:"input_tokens,omitempty"` // nil: not told
	OutputTokens *int    `json:"output_tokens,omitempty"`
}

// Check is one verdict. Messages name places and rules, never an input's or an output's content.
type Check struct {
	Name     string    `json:"name"`
	Status   Status    `json:"status"`
	Code     string    `json:"code,omitempty"` // the failure's code if the request failed
	Message  string    `json:"message,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one place where an output breaks a rule.
type Problem struct {
	Pointer  string `json:"pointer"` // RFC 6901
	Expected string `json:"expected"`
	Got      string `json:"got,omitempty"` // the kind of value, never the value
}

// Basis is everything that a result depends on. A pass counts for exactly this.
type Basis struct {
	TaskVersion   string `json:"task_version"`  // tasks.Definition.Digest
	CasesDigest   string `json:"cases_digest"`  //
	ConfigDigest  string `json:"config_digest"` // provider configuration and adapter version
	ChecksVersion string `json:"checks_version"`
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

// Failure is a failed check and where it failed.
type Failure struct {
	Case  string
	Run   int
	Check Check
}

func (f Failure) String() string {
	s := fmt.Sprintf("case %q, run %d, check %s: ", f.Case, f.Run, f.Check.Name)
	if f.Check.Code != "" {
		s += f.Check.Code + ": "
	}
	return s + f.Check.Message
}

// Failures lists every failed check in order of case and run.
func (r Result) Failures() []Failure {
	var out []Failure
	for _, c := range r.Cases {
		for _, run := range c.Runs {
			for _, check := range run.Checks {
				if check.Status != Passed {
					out = append(out, Failure{Case: c.Name, Run: run.Number, Check: check})
				}
			}
		}
	}
	return out
}

// Judge sets Passed and Digest from what was measured. A run that measured nothing has not passed.
func (r *Result) Judge() {
	checks := 0
	for _, c := range r.Cases {
		for _, run := range c.Runs {
			checks += len(run.Checks)
		}
	}
	r.Passed = checks > 0 && len(r.Failures()) == 0
	r.Digest = r.Basis.Digest(r.Target)
}
