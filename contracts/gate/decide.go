package gate

import (
	"fmt"
	"time"

	"github.com/docket-gateway/docket/contracts/report"
)

// maxReasons bounds how many failed checks a decision names.
const maxReasons = 3

// clockSkew is how far another machine's clock may be ahead. A result dated later than that would outlive its max_age.
const clockSkew = 5 * time.Minute

// want is what a pass must have been for.
type want struct {
	task       string
	target     string
	basis      report.Basis
	runs       int
	maxAge     time.Duration
	configured bool // whether a provider of this process serves the target
	suite      bool // whether this process knows the task's cases
}

// stored is a result as the database has it.
type stored struct {
	id        string
	mode      report.Mode
	passed    bool
	digest    string
	basis     report.Basis
	createdAt time.Time
	report    *report.Result // nil if it cannot be read
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
		return withoutResult(other, w)
	}
	d := Decision{CheckedAt: &latest.createdAt}
	changed := changes(latest.basis, w.basis)
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
	d.Reasons = changed
	if latest.digest != latest.basis.Digest(w.target) {
		d.Reasons = append(d.Reasons, "The stored result does not match its own digest.")
	}
	if latest.report == nil {
		d.Reasons = append(d.Reasons, "The stored result's report cannot be read.")
	} else if latest.report.Runs < w.runs {
		d.Reasons = append(d.Reasons, fmt.Sprintf("It passed with %d of the %d runs per case that the task asks for.", latest.report.Runs, w.runs))
	}
	if !now.Before(expires) {
		d.Reasons = append(d.Reasons, fmt.Sprintf("The pass is %s old; the task allows %s.", age(latest.createdAt, now), w.maxAge))
	}
	if latest.createdAt.After(now.Add(clockSkew)) {
		d.Reasons = append(d.Reasons, "The pass is dated in the future.")
	}
	if len(d.Reasons) > 0 {
		d.State = Stale
		return d
	}
	d.Allowed, d.State = true, Passed
	return d
}

func closed(s State, reason string) Decision { return Decision{State: s, Reasons: []string{reason}} }

// withoutResult explains a closed gate by what is known of the task's other versions.
func withoutResult(other *stored, w want) Decision {
	if other == nil {
		return closed(Missing, fmt.Sprintf("The contract of the task %s was never run at %s.", w.task, w.target))
	}
	d := Decision{State: Missing, CheckedAt: &other.createdAt}
	verdict := "failed"
	if other.passed {
		d.State, verdict = Stale, "passed"
	}
	d.Reasons = []string{fmt.Sprintf("The task version changed: the last result at %s %s for %s, this is %s.",
		w.target, verdict, short(other.basis.TaskVersion), short(w.basis.TaskVersion))}
	return d
}

func changes(had, want report.Basis) []string {
	var out []string
	for _, c := range []struct{ what, had, want string }{
		{"task version", had.TaskVersion, want.TaskVersion},
		{"provider configuration or adapter", had.ConfigDigest, want.ConfigDigest},
		{"task's cases", had.CasesDigest, want.CasesDigest},
		{"version of the checks", had.ChecksVersion, want.ChecksVersion},
	} {
		if c.had != c.want {
			out = append(out, fmt.Sprintf("The %s changed since the result: it was for %s, now it is %s.", c.what, short(c.had), short(c.want)))
		}
	}
	return out
}

func failures(r *stored, w want, now time.Time) []string {
	head := fmt.Sprintf("The contract failed at %s %s ago", w.target, age(r.createdAt, now))
	if r.report == nil {
		return []string{head + "; the report cannot be read."}
	}
	failed := r.report.Failures()
	if len(failed) == 0 {
		return []string{head + "."}
	}
	var out []string
	for i, f := range failed {
		if i == maxReasons {
			out = append(out, fmt.Sprintf("%d more checks failed.", len(failed)-maxReasons))
			break
		}
		out = append(out, fmt.Sprintf("%s: %s.", head, f))
	}
	return out
}

func age(then, now time.Time) time.Duration { return max(0, now.Sub(then)).Round(time.Second) }

// short keeps enough of a digest for people to compare.
func short(digest string) string {
	const n = len("sha256:") + 12
	if len(digest) > n {
		return digest[:n]
	}
	return digest
}
