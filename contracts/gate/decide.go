package gate

import (
	"fmt"
	"time"

	"github.com/docket-gateway/docket/contracts/report"
)

// ClockSkew is how far another machine's clock may be ahead. A result dated later than that would outlive its max_age.
const ClockSkew = 5 * time.Minute

// want is what a pass must have been for.
type want struct {
	task       string
	target     string
	basis      report.Basis
	runs       int
	maxAge     time.Duration
	configured bool                // whether a provider of this process serves the target
	suite      bool                // whether this process knows the task's cases
	parts      func() report.Parts // what the basis is made of, asked for when words are needed; may be nil
}

// stored is a result as the database has it.
type stored struct {
	id        string
	mode      report.Mode
	passed    bool
	digest    string
	basis     report.Basis
	ranBy     string
	signedBy  string // empty: not imported
	createdAt time.Time
	report    *report.Result // nil if it cannot be read
}

// partsOf are what the result's digests are made of; none for results of earlier versions.
func (s *stored) partsOf() report.Parts {
	if s.report == nil {
		return nil
	}
	return s.report.Basis.Parts
}

// decide is the gate's rule. latest is the newest result for exactly this task version and target, other the newest one
// for any other version of the task; each may be nil, and neither is a replay.
func decide(latest, other *stored, w want, now time.Time) Decision {
	if !w.configured {
		return closed(Missing, fmt.Sprintf("The target %s is not configured here.", w.target))
	}
	if !w.suite {
		return closed(Missing, fmt.Sprintf("The cases of the task %s are not known here, so no result can be matched with them.", w.task))
	}
	if latest == nil {
		return withoutResult(other, w, now)
	}
	d := latest.decision(now)
	changed := changes(latest, w, now)
	switch {
	case !latest.mode.OpensGate():
		d.State = Missing
		d.Reasons = []string{fmt.Sprintf("The only result is a %s; it proves the harness, not the target.", latest.mode)}
		return d
	case !latest.passed:
		d.State = Failed
		if len(changed) > 0 { // as with another version's failure: nothing is known of what would be used now
			d.State = Missing
		}
		d.Reasons = append(failures(latest, w, now), changed...)
		return d
	}
	expires := latest.createdAt.Add(w.maxAge)
	d.ExpiresAt = &expires
	d.Reasons = append(changed, disbelief(latest, w)...)
	if latest.report != nil && latest.report.Runs < w.runs {
		d.Reasons = append(d.Reasons, fmt.Sprintf("It passed with %d of the %d runs per case that the task asks for.", latest.report.Runs, w.runs))
	}
	if !now.Before(expires) {
		d.Reasons = append(d.Reasons, fmt.Sprintf("The pass is %s old; the task allows %s.", age(latest.createdAt, now), w.maxAge))
	}
	if latest.createdAt.After(now.Add(ClockSkew)) {
		d.Reasons = append(d.Reasons, "The pass is dated in the future.")
	}
	if len(d.Reasons) > 0 {
		d.State = Stale
		return d
	}
	d.Allowed, d.State = true, Passed
	return d
}

// decision is what there is to say of the result before it is looked at.
func (s *stored) decision(now time.Time) Decision {
	return Decision{CheckedAt: &s.createdAt, Age: age(s.createdAt, now), ResultID: s.id, Mode: s.mode, RanBy: s.ranBy, SignedBy: s.signedBy}
}

func closed(s State, reason string) Decision { return Decision{State: s, Reasons: []string{reason}} }

// withoutResult explains a closed gate by what is known of the task's other versions.
func withoutResult(other *stored, w want, now time.Time) Decision {
	if other == nil {
		return closed(Missing, fmt.Sprintf("The contract of the task %s was never run at %s.", w.task, w.target))
	}
	d := other.decision(now)
	d.State = Missing
	verdict := "failed"
	if other.passed {
		d.State, verdict = Stale, "passed"
	}
	if len(other.partsOf()) == 0 {
		d.Reasons = []string{fmt.Sprintf("The task version changed: the last result at %s, of %s, %s for %s, this is %s.",
			w.target, ago(other.createdAt, now), verdict, short(other.basis.TaskVersion), short(w.basis.TaskVersion))}
		return d
	}
	d.Reasons = append([]string{fmt.Sprintf("The last result at %s, of %s, %s for another version of the task.", w.target, ago(other.createdAt, now), verdict)},
		changes(other, w, now)...)
	return d
}
