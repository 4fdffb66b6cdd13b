// Package gate says whether a target may be used as a fallback now, and why: one function for the resolver, the
// dispatcher and the console.
//
// It imports ent, internal/viewer, internal/tasks and contracts/report, never graph, dispatch or providers.
package gate

import (
	"time"

	"github.com/docket-gateway/docket/contracts/report"
)

// State is a target's contract status for one task version.
type State string

const (
	Passed  State = "PASSED"
	Failed  State = "FAILED"
	Stale   State = "STALE" // it passed, but something it depends on changed, or it is too old
	Missing State = "MISSING"
)

// Decision is the gate's answer. Reasons are whole sentences; they are empty only if the target is allowed.
type Decision struct {
	Allowed   bool
	State     State
	Reasons   []string
	CheckedAt *time.Time // when the result that decides was stored, or its run was over if it was imported
	ExpiresAt *time.Time // when a pass ends by age

	// Of the result that decides; empty without one.
	ResultID string
	Mode     report.Mode
	RanBy    string
	SignedBy string        // the id of the key that an imported result was trusted for
	Age      time.Duration // since CheckedAt
}
