package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/report"
)

// complete is a result that passes: every check is there.
func complete() report.Result {
	r := report.Result{
		Task: "triage", TaskLabel: "1.0.0", Target: "a/b", Mode: report.Live, Runs: 1, RanBy: "somebody",
		Cases: []report.Case{{Name: "one", Runs: []report.Run{{Number: 1, DurationMS: 1500}}}},
	}
	c := &r.Cases[0]
	for _, name := range report.Checks() {
		check := report.Check{Name: name, Status: report.Passed}
		switch name {
		case report.CheckSchema, report.CheckMeaning:
			c.Runs[0].Checks = append(c.Runs[0].Checks, check)
		case report.CheckFaults:
			r.Checks = append(r.Checks, check)
		default:
			c.Checks = append(c.Checks, check)
		}
	}
	r.Judge()
	return r
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*report.Result)
		passed bool
	}{
		"EveryCheckPassed":        {func(*report.Result) {}, true},
		"NotApplicableIsNoBreach": {func(r *report.Result) { r.Cases[0].Checks[0].Status = report.NotApplicable }, true},
		"OneFailed":               {func(r *report.Result) { r.Cases[0].Checks[0].Status = report.Failed }, false},
		"OneNotRun":               {func(r *report.Result) { r.Checks[0].Status = report.NotRun }, false},
		"NoVerdict":               {func(r *report.Result) { r.Checks[0].Status = "" }, false},
		"AnUnknownCheckFailed": {func(r *report.Result) {
			r.Checks = append(r.Checks, report.Check{Name: "tomorrow", Status: report.Failed})
		}, false},
		"OneCheckMissing":          {func(r *report.Result) { r.Checks = nil }, false},
		"SchemaCannotBeLeftOut":    {func(r *report.Result) { r.Cases[0].Runs[0].Checks[0].Status = report.NotApplicable }, false},
		"NothingMeasured":          {func(r *report.Result) { r.Cases = nil }, false},
		"FewerRunsThanAskedFor":    {func(r *report.Result) { r.Runs = 2 }, false},
		"ARunThatMeasuredNothing":  {func(r *report.Result) { r.Runs = 2; r.Cases[0].Runs = append(r.Cases[0].Runs, report.Run{Number: 2}) }, false},
		"ACaseThatMeasuredNothing": {func(r *report.Result) { r.Cases = append(r.Cases, report.Case{Name: "two"}) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := complete()
			tc.change(&r)
			r.Passed = !tc.passed
			r.Judge()
			require.Equal(t, tc.passed, r.Passed)
			require.Equal(t, r.Basis.Digest(r.Target), r.Digest)
		})
	}
}

func TestSummaryIsTheWorst(t *testing.T) {
	t.Parallel()
	r := complete()
	require.Equal(t, report.Passed, r.Summary(report.CheckBudget))
	require.Equal(t, report.NotRun, r.Summary("none"))
	for _, s := range []report.Status{report.NotApplicable, report.Passed, report.NotRun, report.Failed} {
		r.Checks = append(r.Checks, report.Check{Name: "new", Status: s})
		require.Equal(t, s, r.Summary("new"))
	}
}

func TestBasisDigestFollowsEveryPart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, b := range []report.Basis{
		{TaskVersion: "a", CasesDigest: "b", ConfigDigest: "c", ChecksVersion: "d"},
		{TaskVersion: "x", CasesDigest: "b", ConfigDigest: "c", ChecksVersion: "d"},
		{TaskVersion: "a", CasesDigest: "x", ConfigDigest: "c", ChecksVersion: "d"},
		{TaskVersion: "a", CasesDigest: "b", ConfigDigest: "x", ChecksVersion: "d"},
		{TaskVersion: "a", CasesDigest: "b", ConfigDigest: "c", ChecksVersion: "x"},
		{TaskVersion: "ab", ConfigDigest: "c", ChecksVersion: "d"},
	} {
		for _, target := range []string{"p/m", "p/n"} {
			d := b.Digest(target)
			require.Regexp(t, `^sha256:[0-9a-f]{64}$`, d)
			require.False(t, seen[d])
			seen[d] = true
		}
	}
}

func TestOpenFoldsRunsThatSayTheSame(t *testing.T) {
	t.Parallel()
	r := complete()
	r.Cases[0].Runs = nil
	for n := range 4 {
		check := report.Check{Name: report.CheckSchema, Status: report.Failed, Code: "JAMMED", Message: "paper"}
		if n == 2 {
			check.Message = "fire"
		}
		r.Cases[0].Runs = append(r.Cases[0].Runs, report.Run{Number: n + 1, Checks: []report.Check{check, {Name: report.CheckMeaning, Status: report.NotRun}}})
	}
	open := r.Open()
	require.Len(t, open, 2)
	require.Equal(t, `case "one", runs 1, 2, 4, check schema: JAMMED: paper`, open[0].String())
	require.Equal(t, `case "one", run 3, check schema: JAMMED: fire`, open[1].String())

	// Where nothing failed, what was not run keeps it from passing.
	r = complete()
	r.Checks[0] = report.Check{Name: report.CheckFaults, Status: report.NotRun, Message: "nobody injects"}
	require.Len(t, r.Open(), 1)
	require.Equal(t, "the target, check faults: not run: nobody injects", r.Open()[0].String())
	require.Empty(t, complete().Open())
}

func TestCompareVerdicts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		against, target report.Status
		breaks          bool
	}{
		{report.Passed, report.Passed, false},
		{report.Passed, report.Failed, true},
		{report.Passed, report.NotRun, true},
		{report.Passed, "", true}, // it is not there at all
		{report.Passed, report.NotApplicable, false},
		{report.Failed, report.Failed, false},
		{report.NotRun, report.Failed, false},
		{"", report.Failed, false},
	} {
		result := func(s report.Status) (r report.Result) {
			if s != "" {
				r.Cases = []report.Case{{Name: "one", Checks: []report.Check{{Name: "prompt", Aspect: "window", Status: s}}}}
			}
			return r
		}
		got := report.CompareVerdicts(result(tc.against), result(tc.target), "one")
		require.Len(t, got, 1)
		require.Equal(t, "prompt/window", got[0].Check)
		require.Equal(t, tc.breaks, got[0].Breaks, "%s against %s", tc.target, tc.against)
	}
}
