package gate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/report"
)

func TestDecide(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	basis := report.Basis{TaskVersion: "sha256:task", CasesDigest: "sha256:cases", ConfigDigest: "sha256:config", ChecksVersion: "1"}
	good := want{task: "triage", target: "demo/laser", basis: basis, runs: 2, maxAge: 24 * time.Hour, configured: true, suite: true}
	failedReport := func(n int) *report.Result {
		r := &report.Result{Runs: 2}
		for range n {
			r.Cases = append(r.Cases, report.Case{Name: "outage", Runs: []report.Run{{Number: 2, Checks: []report.Check{
				{Name: "schema", Status: report.Failed, Code: "JAMMED", Message: "expected: a complete answer; came: paper jam"},
			}}}})
		}
		return r
	}
	pass := func(change func(*stored)) *stored {
		s := &stored{id: "ctr_1", mode: report.Live, passed: true, basis: basis, createdAt: now.Add(-time.Hour), report: &report.Result{Runs: 2}}
		s.digest = basis.Digest("demo/laser")
		if change != nil {
			change(s)
		}
		return s
	}
	rebase := func(change func(*report.Basis)) *stored {
		return pass(func(s *stored) { change(&s.basis); s.digest = s.basis.Digest("demo/laser") })
	}
	other := func(passed bool) *stored {
		return pass(func(s *stored) { s.passed = passed; s.basis.TaskVersion = "sha256:older" })
	}

	for _, tc := range []struct {
		name          string
		latest, other *stored
		change        func(*want)
		state         State
		reasons       []string
	}{
		{name: "OpensForAFreshPass", latest: pass(nil), state: Passed},
		{name: "OpensForARecording", latest: pass(func(s *stored) { s.mode = report.Record }), state: Passed},
		{name: "OpensUntilTheLastMoment", latest: pass(func(s *stored) { s.createdAt = now.Add(-24*time.Hour + time.Second) }), state: Passed},
		{name: "OpensForMoreRunsThanAskedFor", latest: pass(func(s *stored) { s.report.Runs = 9 }), state: Passed},
		{name: "IgnoresOtherVersionsBesideItsOwn", latest: pass(nil), other: other(false), state: Passed},

		{name: "ClosesWithoutAnyResult", state: Missing, reasons: []string{"The contract of the task triage was never run at demo/laser."}},
		{name: "ClosesForAReplay", latest: pass(func(s *stored) { s.mode = report.Replay }), state: Missing,
			reasons: []string{"The only result is a replay; it proves the harness, not the target."}},
		{name: "ClosesForAnUnknownTarget", latest: pass(nil), change: func(w *want) { w.configured = false }, state: Missing,
			reasons: []string{"The target demo/laser is not configured here."}},
		{name: "ClosesForUnknownCases", latest: pass(nil), change: func(w *want) { w.suite = false }, state: Missing,
			reasons: []string{"The cases of the task triage are not known here, so no result can be matched with them."}},
		{name: "ClosesAtMaxAge", latest: pass(func(s *stored) { s.createdAt = now.Add(-24 * time.Hour) }), state: Stale,
			reasons: []string{"The pass is 24h0m0s old; the task allows 24h0m0s."}},
		{name: "ClosesForAResultFromTheFuture", latest: pass(func(s *stored) { s.createdAt = now.Add(time.Hour) }), state: Stale,
			reasons: []string{"The pass is dated in the future."}},
		{name: "ToleratesASlowClock", latest: pass(func(s *stored) { s.createdAt = now.Add(time.Minute) }), state: Passed},
		{name: "ClosesWhenTheConfigurationChanged", latest: rebase(func(b *report.Basis) { b.ConfigDigest = "sha256:before" }), state: Stale,
			reasons: []string{"The provider configuration or adapter changed since the result: it was for sha256:before, now it is sha256:config."}},
		{name: "ClosesWhenACaseChanged", latest: rebase(func(b *report.Basis) { b.CasesDigest = "sha256:before" }), state: Stale,
			reasons: []string{"The task's cases changed since the result: it was for sha256:before, now it is sha256:cases."}},
		{name: "ClosesWhenTheChecksChanged", latest: rebase(func(b *report.Basis) { b.ChecksVersion = "0" }), state: Stale,
			reasons: []string{"The version of the checks changed since the result: it was for 0, now it is 1."}},
		{name: "ClosesForAResultOfAnotherVersion", latest: rebase(func(b *report.Basis) { b.TaskVersion = "sha256:older" }), state: Stale,
			reasons: []string{"The task version changed since the result: it was for sha256:older, now it is sha256:task."}},
		{name: "ClosesForTooFewRuns", latest: pass(func(s *stored) { s.report.Runs = 1 }), state: Stale,
			reasons: []string{"It passed with 1 of the 2 runs per case that the task asks for."}},
		{name: "ClosesForAnUnreadableReport", latest: pass(func(s *stored) { s.report = nil }), state: Stale,
			reasons: []string{"The stored result's report cannot be read."}},
		{name: "ClosesForAChangedRow", latest: pass(func(s *stored) { s.digest = "sha256:forged" }), state: Stale,
			reasons: []string{"The stored result does not match its own digest."}},
		{name: "SaysThatAnotherVersionPassed", other: other(true), state: Stale,
			reasons: []string{"The task version changed: the last result at demo/laser passed for sha256:older, this is sha256:task."}},
		{name: "SaysThatAnotherVersionFailed", other: other(false), state: Missing,
			reasons: []string{"The task version changed: the last result at demo/laser failed for sha256:older, this is sha256:task."}},
		{name: "SaysWhichCheckFailed", latest: pass(func(s *stored) { s.passed = false; s.report = failedReport(1) }), state: Failed,
			reasons: []string{`The contract failed at demo/laser 1h0m0s ago: case "outage", run 2, check schema: JAMMED: expected: a complete answer; came: paper jam.`}},
		{name: "SaysBothFailureAndChange", latest: pass(func(s *stored) {
			s.passed = false
			s.report = failedReport(1)
			s.basis.CasesDigest = "sha256:before"
		}), state: Missing, reasons: []string{
			`The contract failed at demo/laser 1h0m0s ago: case "outage", run 2, check schema: JAMMED: expected: a complete answer; came: paper jam.`,
			"The task's cases changed since the result: it was for sha256:before, now it is sha256:cases.",
		}},
		{name: "FailsWithoutAReport", latest: pass(func(s *stored) { s.passed = false; s.report = nil }), state: Failed,
			reasons: []string{"The contract failed at demo/laser 1h0m0s ago; the report cannot be read."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := good
			if tc.change != nil {
				tc.change(&w)
			}
			d := decide(tc.latest, tc.other, w, now)
			require.Equal(t, tc.state, d.State)
			require.Equal(t, tc.state == Passed, d.Allowed)
			require.Equal(t, tc.reasons, d.Reasons)
			if d.Allowed {
				require.Equal(t, tc.latest.createdAt, *d.CheckedAt)
				require.Equal(t, tc.latest.createdAt.Add(24*time.Hour), *d.ExpiresAt)
			}
		})
	}

	t.Run("NamesAFewFailuresAndCountsTheRest", func(t *testing.T) {
		t.Parallel()
		d := decide(pass(func(s *stored) { s.passed = false; s.report = failedReport(7) }), nil, good, now)
		require.Len(t, d.Reasons, maxReasons+1)
		require.Equal(t, "4 more checks failed.", d.Reasons[maxReasons])
	})
}
