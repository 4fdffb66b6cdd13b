package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/command"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/tasks"
)

// fakeRunner passes at every target but those in fails; those in broken cannot be run.
type fakeRunner struct {
	fails, broken map[string]bool
	asked         []string
	mode          report.Mode
	runs          int
	after         func() // called at the end of each run, if set
}

func (f *fakeRunner) Run(_ context.Context, s contracts.Suite, target string, mode report.Mode, runs int) (report.Result, error) {
	f.asked = append(f.asked, s.Task.Name+"@"+target)
	f.mode, f.runs = mode, runs
	if f.after != nil {
		f.after()
	}
	if f.broken[target] {
		return report.Result{}, contracts.ErrUnknownTarget
	}
	check := report.Check{Name: report.CheckSchema, Status: report.Passed}
	if f.fails[target] {
		check = report.Check{Name: report.CheckSchema, Status: report.Failed, Code: "OUTPUT_INVALID", Message: "it broke",
			Problems: []report.Problem{{Pointer: "/a", Expected: "a <string>", Got: "a number"}}}
	}
	res := report.Result{Task: s.Task.Name, TaskLabel: s.Task.Version, Target: target, Mode: mode, Runs: 1,
		Cases: []report.Case{{Name: "one", Runs: []report.Run{{Number: 1, Checks: []report.Check{check}}}}}}
	res.Judge()
	return res, nil
}

type fakeRecorder struct {
	stored []report.Result
	err    error
}

func (f *fakeRecorder) Record(_ context.Context, r report.Result) error {
	f.stored = append(f.stored, r)
	return f.err
}

func suites() []contracts.Suite {
	return []contracts.Suite{
		{Task: &tasks.Definition{Name: "invoice", Version: "1", Target: "a/one", Fallbacks: []string{"b/two"}}},
		{Task: &tasks.Definition{Name: "triage", Version: "2", Target: "a/one"}},
	}
}

func streams() (command.Streams, *bytes.Buffer, *bytes.Buffer) {
	var out, errs bytes.Buffer
	return command.Streams{Out: &out, Err: &errs}, &out, &errs
}

func TestRun(t *testing.T) {
	t.Parallel()

	t.Run("SelectsAndExits", func(t *testing.T) {
		t.Parallel()
		for _, tc := range []struct {
			name     string
			options  command.Options
			runner   fakeRunner
			recorder fakeRecorder
			asked    []string
			stored   int
			code     int
			complain string
		}{
			{name: "every task at its whole route", asked: []string{"invoice@a/one", "invoice@b/two", "triage@a/one"}, stored: 3, code: command.ExitPassed},
			{name: "one task", options: command.Options{Task: "triage"}, asked: []string{"triage@a/one"}, stored: 1, code: command.ExitPassed},
			{name: "one target", options: command.Options{Target: "c/three"}, asked: []string{"invoice@c/three", "triage@c/three"}, stored: 2, code: command.ExitPassed},
			{name: "a failure is stored too", runner: fakeRunner{fails: map[string]bool{"b/two": true}},
				asked: []string{"invoice@a/one", "invoice@b/two", "triage@a/one"}, stored: 3, code: command.ExitFailed},
			{name: "cannot run outweighs a failure", runner: fakeRunner{fails: map[string]bool{"a/one": true}, broken: map[string]bool{"b/two": true}},
				asked: []string{"invoice@a/one", "invoice@b/two", "triage@a/one"}, stored: 2, code: command.ExitUnusable, complain: "invoice at b/two: the target is not configured"},
			{name: "cannot store", recorder: fakeRecorder{err: errors.New("disk full")}, options: command.Options{Task: "triage"},
				asked: []string{"triage@a/one"}, stored: 1, code: command.ExitUnusable, complain: "disk full"},
			{name: "unknown task", options: command.Options{Task: "nope"}, code: command.ExitUnusable, complain: `there is no task "nope"`},
			{name: "unknown mode", options: command.Options{Mode: "dream"}, code: command.ExitUnusable, complain: `the mode "dream" is not known`},
			{name: "unknown format", options: command.Options{Format: "pdf"}, code: command.ExitUnusable, complain: `the format "pdf" is not known`},
			{name: "negative runs", options: command.Options{Runs: -1}, code: command.ExitUnusable, complain: "the runs must be"},
			{name: "too many runs", options: command.Options{Runs: 101}, code: command.ExitUnusable, complain: "the runs must be"},
			{name: "report cannot be written", options: command.Options{Task: "triage", Output: "/nowhere/at/all"},
				asked: []string{"triage@a/one"}, stored: 1, code: command.ExitUnusable, complain: "write the report"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				std, _, errs := streams()
				code := command.Run(t.Context(), suites(), &tc.runner, &tc.recorder, tc.options, std)
				require.Equal(t, tc.code, code, errs.String())
				require.Equal(t, tc.asked, tc.runner.asked)
				require.Len(t, tc.recorder.stored, tc.stored)
				require.Contains(t, errs.String(), tc.complain)
			})
		}
	})

	t.Run("PassesOnModeAndRuns", func(t *testing.T) {
		t.Parallel()
		std, _, _ := streams()
		runner := &fakeRunner{}
		command.Run(t.Context(), suites(), runner, &fakeRecorder{}, command.Options{Runs: 7}, std)
		require.Equal(t, report.Live, runner.mode)
		require.Equal(t, 7, runner.runs)
	})

	t.Run("StopsWhenInterrupted", func(t *testing.T) {
		t.Parallel()
		std, _, errs := streams()
		runner := &fakeRunner{}
		ctx, cancel := context.WithCancel(t.Context())
		runner.after = cancel
		require.Equal(t, command.ExitUnusable, command.Run(ctx, suites(), runner, &fakeRecorder{}, command.Options{}, std))
		require.Len(t, runner.asked, 1)
		require.Contains(t, errs.String(), "interrupted with 1 of 3 runs done")
	})

	t.Run("NoTaskIsNoPass", func(t *testing.T) {
		t.Parallel()
		std, _, errs := streams()
		require.Equal(t, command.ExitUnusable, command.Run(t.Context(), nil, &fakeRunner{}, &fakeRecorder{}, command.Options{}, std))
		require.Contains(t, errs.String(), "there is no task")
	})
}

func TestReports(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, format report.Format, output string) string {
		t.Helper()
		std, out, errs := streams()
		code := command.Run(t.Context(), suites(), &fakeRunner{fails: map[string]bool{"b/two": true}}, &fakeRecorder{},
			command.Options{Format: format, Output: output}, std)
		require.Equal(t, command.ExitFailed, code, errs.String())
		return out.String()
	}

	t.Run("Table", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, `TASK     VERSION  TARGET  MODE  CASES  RUNS  CHECKS  FAILED  RESULT
invoice  1        a/one   live  1      1     1       0       PASSED
invoice  1        b/two   live  1      1     1       1       FAILED
triage   2        a/one   live  1      1     1       0       PASSED

invoice at b/two:
  case "one", run 1, check schema: OUTPUT_INVALID: it broke
    /a: expected: a <string>; came: a number
`, run(t, report.Table, ""))
	})

	t.Run("JSONToAFile", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "report.json")
		require.Empty(t, run(t, report.JSON, file))
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var doc struct {
			Format  int
			Passed  bool
			Results []report.Result
		}
		require.NoError(t, json.Unmarshal(raw, &doc))
		require.Equal(t, 1, doc.Format)
		require.False(t, doc.Passed)
		require.Len(t, doc.Results, 3)
		require.Contains(t, string(raw), "a <string>")
	})

	t.Run("JUnit", func(t *testing.T) {
		t.Parallel()
		var doc struct {
			Suites []struct {
				Name     string `xml:"name,attr"`
				Tests    int    `xml:"tests,attr"`
				Failures int    `xml:"failures,attr"`
				Cases    []struct {
					Name    string `xml:"name,attr"`
					Failure *struct {
						Type string `xml:"type,attr"`
						Text string `xml:",chardata"`
					} `xml:"failure"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		require.NoError(t, xml.Unmarshal([]byte(run(t, report.JUnit, "")), &doc))
		require.Len(t, doc.Suites, 3)
		require.Equal(t, "invoice at b/two", doc.Suites[1].Name)
		require.Equal(t, 1, doc.Suites[1].Failures)
		require.Equal(t, "one run 1 schema", doc.Suites[1].Cases[0].Name)
		require.Equal(t, "OUTPUT_INVALID", doc.Suites[1].Cases[0].Failure.Type)
		require.Contains(t, doc.Suites[1].Cases[0].Failure.Text, "a <string>")
		require.Nil(t, doc.Suites[0].Cases[0].Failure)
	})
}

func TestShowStatus(t *testing.T) {
	t.Parallel()
	checked := time.Date(2026, 3, 13, 12, 0, 0, 0, time.UTC)
	expires := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	check := func(_ context.Context, _ *tasks.Definition, target string) (gate.Decision, error) {
		if target == "b/two" {
			return gate.Decision{State: gate.Stale, Reasons: []string{"It is too old."}}, nil
		}
		return gate.Decision{Allowed: true, State: gate.Passed, ExpiresAt: &expires, CheckedAt: &checked, Age: 90 * time.Minute,
			ResultID: "ctr_1", Mode: report.Live, RanBy: "ci", SignedBy: "SHA256:key"}, nil
	}

	t.Run("Table", func(t *testing.T) {
		t.Parallel()
		std, out, _ := streams()
		require.Equal(t, command.ExitFailed, command.ShowStatus(t.Context(), suites(), check, command.Options{}, std))
		require.Equal(t, `TASK     VERSION  TARGET  ROLE      STATE   MODE  RAN BY         AGE      EXPIRES
invoice  1        a/one   primary   PASSED  live  ci (imported)  1h30m0s  2026-03-14T12:00:00Z
invoice  1        b/two   fallback  STALE   -     -              -        -
triage   2        a/one   primary   PASSED  live  ci (imported)  1h30m0s  2026-03-14T12:00:00Z

invoice at b/two: It is too old.
`, out.String())
	})

	t.Run("JSON", func(t *testing.T) {
		t.Parallel()
		std, out, _ := streams()
		require.Equal(t, command.ExitPassed, command.ShowStatus(t.Context(), suites(), check, command.Options{Task: "triage", Format: report.JSON}, std))
		require.JSONEq(t, `{"format": 1, "status": [{"task": "triage", "version": "2", "task_version": "", "target": "a/one", "role": "primary",
			"state": "PASSED", "allowed": true, "reasons": [], "checked_at": "2026-03-13T12:00:00Z", "expires_at": "2026-03-14T12:00:00Z",
			"result_id": "ctr_1", "mode": "live", "ran_by": "ci", "signed_by": "SHA256:key", "age_seconds": 5400}]}`, out.String())
	})

	t.Run("CannotSay", func(t *testing.T) {
		t.Parallel()
		std, out, errs := streams()
		broken := func(context.Context, *tasks.Definition, string) (gate.Decision, error) {
			return gate.Decision{}, errors.New("no database")
		}
		require.Equal(t, command.ExitUnusable, command.ShowStatus(t.Context(), suites(), broken, command.Options{}, std))
		require.Empty(t, out.String())
		require.Contains(t, errs.String(), "no database")
		require.Equal(t, command.ExitUnusable, command.ShowStatus(t.Context(), suites(), check, command.Options{Format: report.JUnit}, std))
	})
}
