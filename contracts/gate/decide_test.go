package gate

import (
	"maps"
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

	lacking := func(change func(*report.Result)) func(*stored) {
		return func(s *stored) { change(s.report) }
	}
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
		s := &stored{id: "ctr_1", mode: report.Live, passed: true, basis: basis, createdAt: now.Add(-time.Hour), report: whole(2)}
		s.digest = basis.Digest("demo/laser")
		s.report.Basis = basis
		if change != nil {
			change(s)
		}
		if s.report != nil {
			s.report.Mode = s.mode
		}
		return s
	}
	rebase := func(change func(*report.Basis)) *stored {
		return pass(func(s *stored) {
			change(&s.basis)
			s.digest = s.basis.Digest("demo/laser")
			s.report.Basis = s.basis
		})
	}
	parts := report.Parts{"task/system.tmpl": "sha256:now", "task/temperature": "=0.2", "task/fallbacks": "sha256:now", "case/refund": "sha256:a",
		"golden/refund.golden.json": "sha256:now", "provider/adapter": "=openai/4", "provider/base_url": "sha256:now", "provider/ack_timeout": "=10s", "provider/tokenizer": "="}
	partly := func(change func(*report.Basis, report.Parts)) *stored {
		return rebase(func(b *report.Basis) {
			b.Parts = maps.Clone(parts)
			change(b, b.Parts)
		})
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
		{name: "OpensForMoreRunsThanAskedFor", latest: pass(func(s *stored) { s.report = whole(9); s.report.Basis = basis }), state: Passed},
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
			reasons: []string{"The provider configuration or adapter changed since the result of 1 hour ago: it was for sha256:before, now it is sha256:config."}},
		{name: "ClosesWhenACaseChanged", latest: rebase(func(b *report.Basis) { b.CasesDigest = "sha256:before" }), state: Stale,
			reasons: []string{"The task's cases changed since the result of 1 hour ago: it was for sha256:before, now it is sha256:cases."}},
		{name: "ClosesWhenTheChecksChanged", latest: rebase(func(b *report.Basis) { b.ChecksVersion = "0" }), state: Stale,
			reasons: []string{"The version of the checks changed since the result of 1 hour ago: it was for 0, now it is 1."}},
		{name: "ClosesForAResultOfAnotherVersion", latest: rebase(func(b *report.Basis) { b.TaskVersion = "sha256:older" }), state: Stale,
			reasons: []string{"The task version changed since the result of 1 hour ago: it was for sha256:older, now it is sha256:task."}},
		{name: "ClosesForTooFewRuns", latest: pass(func(s *stored) { s.report = whole(1); s.report.Basis = basis }), state: Stale,
			reasons: []string{"It passed with 1 of the 2 runs per case that the task asks for."}},
		{name: "ClosesForAnUnreadableReport", latest: pass(func(s *stored) { s.report = nil }), state: Stale,
			reasons: []string{"The stored result's report cannot be read."}},
		{name: "ClosesForAPassThatLacksChecks", latest: pass(lacking(func(r *report.Result) { r.Checks = nil })), state: Stale,
			reasons: []string{"The result says nothing of faults, which a pass has to."}},
		{name: "ClosesForAPassWithAFailedCheck", latest: pass(lacking(func(r *report.Result) { r.Checks[0].Status = report.Failed })), state: Stale,
			reasons: []string{"The stored result's report is not that of a pass."}},
		{name: "ClosesForAPassWithACheckThatWasNotRun", latest: pass(lacking(func(r *report.Result) {
			r.Checks[0].Status, r.Checks[0].Message = report.NotRun, "no injector"
		})), state: Stale, reasons: []string{"Not run: check faults: no injector."}},
		{name: "ClosesForAReportOfAnotherTarget", latest: pass(lacking(func(r *report.Result) { r.Target = "demo/fax" })), state: Stale,
			reasons: []string{"The stored result's report is that of another run."}},
		{name: "ClosesForAReportOfAnotherTask", latest: pass(lacking(func(r *report.Result) { r.Task = "invoice" })), state: Stale,
			reasons: []string{"The stored result's report is that of another run."}},
		{name: "ClosesForAReportOnAnotherBasis", latest: pass(lacking(func(r *report.Result) { r.Basis.CasesDigest = "sha256:x" })), state: Stale,
			reasons: []string{"The stored result's report is that of another run."}},
		{name: "SaysWhatWasNotRun", latest: pass(func(s *stored) { s.passed = false; s.report.Checks = nil }), state: Failed,
			reasons: []string{"The contract failed at demo/laser 1 hour ago.", "The result says nothing of faults, which a pass has to."}},

		{name: "NamesTheFileThatChanged", latest: partly(func(b *report.Basis, p report.Parts) { b.TaskVersion = "v1"; p["task/system.tmpl"] = "sha256:old" }),
			state: Stale, reasons: []string{"system.tmpl changed since the result of 1 hour ago."}},
		{name: "NamesTheKeyThatChanged", latest: partly(func(b *report.Basis, p report.Parts) { b.TaskVersion = "v1"; p["task/temperature"] = "=0" }),
			state: Stale, reasons: []string{"The key temperature of task.yaml is 0.2 now, it was 0 at the result of 1 hour ago."}},
		{name: "NamesTheCaseThatWasAdded", latest: partly(func(b *report.Basis, p report.Parts) { b.CasesDigest = "v1"; delete(p, "case/refund") }),
			state: Stale, reasons: []string{"The case refund was added since the result of 1 hour ago."}},
		{name: "NamesTheCaseThatWasRemoved", latest: partly(func(b *report.Basis, p report.Parts) { b.CasesDigest = "v1"; p["case/gone"] = "sha256:x" }),
			state: Stale, reasons: []string{"The case gone was removed since the result of 1 hour ago."}},
		{name: "NamesTheGolden", latest: partly(func(b *report.Basis, p report.Parts) {
			b.CasesDigest = "v1"
			p["golden/refund.golden.json"] = "sha256:x"
		}),
			state: Stale, reasons: []string{"The golden refund.golden.json changed since the result of 1 hour ago."}},
		{name: "NamesTheAdapter", latest: partly(func(b *report.Basis, p report.Parts) { b.ConfigDigest = "v1"; p["provider/adapter"] = "=openai/3" }),
			state: Stale, reasons: []string{"The adapter is openai/4 now, it was openai/3 at the result of 1 hour ago."}},
		{name: "NamesTheSettings", latest: partly(func(b *report.Basis, p report.Parts) {
			b.ConfigDigest = "v1"
			p["provider/base_url"], p["provider/ack_timeout"], p["provider/tokenizer"] = "sha256:x", "=5s", "=o200k_base"
		}), state: Stale, reasons: []string{
			"The setting ack_timeout of the provider is 10s now, it was 5s at the result of 1 hour ago.",
			"The base URL of the provider changed since the result of 1 hour ago.",
			"The setting tokenizer of the model is not set now, it was o200k_base at the result of 1 hour ago.",
		}},
		{name: "CountsWhatIsTooMuchToName", latest: partly(func(b *report.Basis, p report.Parts) {
			b.CasesDigest = "v1"
			for _, n := range []string{"a", "b", "c", "d", "e"} {
				p["case/"+n] = "sha256:x"
			}
		}), state: Stale, reasons: []string{
			"The case a was removed since the result of 1 hour ago.", "The case b was removed since the result of 1 hour ago.",
			"The case c was removed since the result of 1 hour ago.", "2 more parts of the task's cases changed since the result of 1 hour ago.",
		}},
		{name: "NamesNoPartWhoseDigestIsTheSame", latest: partly(func(b *report.Basis, p report.Parts) { b.CasesDigest = "v1"; p["task/temperature"] = "=0" }),
			state: Stale, reasons: []string{"The task's cases changed since the result of 1 hour ago: it was for v1, now it is sha256:cases."}},
		{name: "NamesWhatChangedSinceAnotherVersion", other: partly(func(b *report.Basis, p report.Parts) { b.TaskVersion = "v1"; p["task/system.tmpl"] = "sha256:old" }),
			state: Stale, reasons: []string{"The last result at demo/laser, of 1 hour ago, passed for another version of the task.",
				"system.tmpl changed since the result of 1 hour ago."}},

		{name: "ClosesForAChangedRow", latest: pass(func(s *stored) { s.digest = "sha256:forged" }), state: Stale,
			reasons: []string{"The stored result does not match its own digest."}},
		{name: "SaysThatAnotherVersionPassed", other: other(true), state: Stale,
			reasons: []string{"The task version changed: the last result at demo/laser, of 1 hour ago, passed for sha256:older, this is sha256:task."}},
		{name: "SaysThatAnotherVersionFailed", other: other(false), state: Missing,
			reasons: []string{"The task version changed: the last result at demo/laser, of 1 hour ago, failed for sha256:older, this is sha256:task."}},
		{name: "SaysWhichCheckFailed", latest: pass(func(s *stored) { s.passed = false; s.report = failedReport(1) }), state: Failed,
			reasons: []string{`The contract failed at demo/laser 1 hour ago: case "outage", run 2, check schema: JAMMED: expected: a complete answer; came: paper jam.`}},
		{name: "SaysBothFailureAndChange", latest: pass(func(s *stored) {
			s.passed = false
			s.report = failedReport(1)
			s.basis.CasesDigest = "sha256:before"
		}), state: Missing, reasons: []string{
			`The contract failed at demo/laser 1 hour ago: case "outage", run 2, check schema: JAMMED: expected: a complete answer; came: paper jam.`,
			"The task's cases changed since the result of 1 hour ago: it was for sha256:before, now it is sha256:cases.",
		}},
		{name: "FailsWithoutAReport", latest: pass(func(s *stored) { s.passed = false; s.report = nil }), state: Failed,
			reasons: []string{"The contract failed at demo/laser 1 hour ago; the report cannot be read."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := good
			w.parts = func() report.Parts { return parts }
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

// whole is a report with every check, all of them passed.
func whole(runs int) *report.Result {
	r := &report.Result{Task: "triage", Target: "demo/laser", Runs: runs, Checks: []report.Check{{Name: report.CheckFaults, Status: report.Passed}}}
	c := report.Case{Name: "one"}
	for n := range runs {
		c.Runs = append(c.Runs, report.Run{Number: n + 1, Checks: []report.Check{{Name: report.CheckSchema, Status: report.Passed}}})
	}
	for _, name := range report.Checks() {
		if name != report.CheckFaults && name != report.CheckSchema {
			c.Checks = append(c.Checks, report.Check{Name: name, Status: report.Passed})
		}
	}
	r.Cases = []report.Case{c}
	return r
}
