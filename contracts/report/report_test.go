package report_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/report"
)

func result(statuses ...report.Status) report.Result {
	r := report.Result{Target: "a/b"}
	for _, s := range statuses {
		r.Cases = append(r.Cases, report.Case{Name: "c", Runs: []report.Run{{Number: 1, Checks: []report.Check{{Name: "schema", Status: s}}}}})
	}
	r.Runs = 1
	for _, name := range report.Checks() {
		if name != report.CheckSchema {
			r.Checks = append(r.Checks, report.Check{Name: name, Status: report.Passed})
		}
	}
	return r
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		result   report.Result
		passed   bool
		failures int
	}{
		{"AllPassed", result(report.Passed, report.Passed), true, 0},
		{"OneFailed", result(report.Passed, report.Failed), false, 1},
		{"NoVerdictIsNoPass", result(report.Passed, ""), false, 0},
		{"NothingMeasuredIsNoPass", result(), false, 0},
		{"CasesWithoutRunsAreNoPass", report.Result{Cases: []report.Case{{Name: "c"}}}, false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.result.Passed = !tc.passed
			tc.result.Judge()
			require.Equal(t, tc.passed, tc.result.Passed)
			require.Len(t, tc.result.Failures(), tc.failures)
			require.Equal(t, tc.result.Basis.Digest(tc.result.Target), tc.result.Digest)
		})
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

func TestWriteRefusesUnknownFormats(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.ErrorContains(t, report.Write(&b, "pdf", nil), `"pdf" is not known`)
	require.Empty(t, b.String())
}

func TestEmptyReportIsNoPass(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, report.JSON, nil))
	require.JSONEq(t, `{"format": 1, "passed": false, "results": []}`, b.String())
}
