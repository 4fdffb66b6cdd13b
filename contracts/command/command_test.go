package command_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
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
	after         func() // called at the end of each run, if set

	mu      sync.Mutex
	asked   []string
	options contracts.Options
}

func (f *fakeRunner) Run(_ context.Context, s contracts.Suite, target string, o contracts.Options) (report.Result, *contracts.Evidence, error) {
	f.mu.Lock()
	f.asked, f.options = append(f.asked, s.Task.Name+"@"+target), o
	f.mu.Unlock()
	if f.after != nil {
		f.after()
	}
	if f.broken[target] {
		return report.Result{}, nil, contracts.ErrUnknownTarget
	}
	res := report.Result{Task: s.Task.Name, TaskLabel: s.Task.Version, Target: target, Mode: o.Mode, Runs: 1, Cases: []report.Case{{Name: "one"}}}
	for _, name := range report.Checks() {
		check := report.Check{Name: name, Status: report.Passed}
		if name == report.CheckSchema {
			if f.fails[target] {
				check = report.Check{Name: name, Status: report.Failed, Code: "OUTPUT_INVALID", Message: "it broke",
					Problems: []report.Problem{{Pointer: "/a", Expected: "a <string>", Got: "a number"}}}
			}
			res.Cases[0].Runs = []report.Run{{Number: 1, Checks: []report.Check{check}}}
			continue
		}
		res.Cases[0].Checks = append(res.Cases[0].Checks, check)
	}
	res.Judge()
	return res, nil, nil
}

type fakeRecorder struct {
	mu     sync.Mutex
	stored []report.Result
	err    error
}

func (f *fakeRecorder) Record(_ context.Context, r report.Result) error {
	f.mu.Lock()
	defer f.mu.Unlock()
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
			runner   *fakeRunner
			recorder *fakeRecorder
			asked    []string
			stored   int
			code     int
			complain string
		}{
			{name: "every task at its whole route", asked: []string{"invoice@a/one", "invoice@b/two", "triage@a/one"}, stored: 3, code: command.ExitPassed},
			{name: "one task", options: command.Options{Task: "triage"}, asked: []string{"triage@a/one"}, stored: 1, code: command.ExitPassed},
			{name: "one target", options: command.Options{Target: "c/three"}, asked: []string{"invoice@c/three", "triage@c/three"}, stored: 2, code: command.ExitPassed},
			{name: "a failure is stored too", runner: &fakeRunner{fails: map[string]bool{"b/two": true}},
				asked: []string{"invoice@a/one", "invoice@b/two", "triage@a/one"}, stored: 3, code: command.ExitFailed},
			{name: "cannot run outweighs a failure", runner: &fakeRunner{fails: map[string]bool{"a/one": true}, broken: map[string]bool{"b/two": true}},
				asked: []string{"invoice@a/one", "invoice@b/two", "triage@a/one"}, stored: 2, code: command.ExitUnusable, complain: "invoice at b/two: the target is not configured"},
			{name: "cannot store", recorder: &fakeRecorder{err: errors.New("disk full")}, options: command.Options{Task: "triage"},
				asked: []string{"triage@a/one"}, stored: 1, code: command.ExitUnusable, complain: "disk full"},
			{name: "unknown task", options: command.Options{Task: "nope"}, code: command.ExitUnusable, complain: `there is no task "nope"`},
			{name: "unknown mode", options: command.Options{Mode: "dream"}, code: command.ExitUnusable, complain: `the mode "dream" is not known`},
			{name: "unknown format", options: command.Options{Format: "pdf"}, code: command.ExitUnusable, complain: `the format "pdf" is not known`},
			{name: "negative runs", options: command.Options{Runs: -1}, code: command.ExitUnusable, complain: "the runs must be"},
			{name: "too many runs", options: command.Options{Runs: 101}, code: command.ExitUnusable, complain: "the runs must be"},
			{name: "no concurrency", options: command.Options{Concurrency: -1}, code: command.ExitUnusable, complain: "the concurrency must be"},
			{name: "compared with itself", options: command.Options{Target: "a/one", Against: "a/one"}, code: command.ExitUnusable, complain: "the same target"},
			{name: "compared without a target", options: command.Options{Against: "a/one"}, code: command.ExitUnusable, complain: "--against needs --target"},
			{name: "goldens of a replay", options: command.Options{Update: true, Mode: report.Replay}, code: command.ExitUnusable, complain: "--update needs the mode live or record"},
			{name: "goldens of what is built in", options: command.Options{Update: true}, code: command.ExitUnusable, complain: `the task "invoice" is built in`},
			{name: "a recording cannot be resumed", options: command.Options{Resume: true, Mode: report.Record}, code: command.ExitUnusable, complain: "only a run in the mode live can be resumed"},
			{name: "nowhere to resume from", options: command.Options{Resume: true}, code: command.ExitUnusable, complain: "name the journal with --journal"},
			{name: "no cap", options: command.Options{MaxCost: "-1"}, code: command.ExitUnusable, complain: `the cap "-1"`},
			{name: "a report without a file", options: command.Options{Reports: []string{"html"}}, code: command.ExitUnusable, complain: `"html" is not of the form`},
			{name: "a report in no format", options: command.Options{Reports: []string{"pdf=x"}}, code: command.ExitUnusable, complain: `"pdf=x" is not of the form`},
			{name: "two reports to one file", options: command.Options{Reports: []string{"html=x", "json=x"}}, code: command.ExitUnusable, complain: "two reports go to the file x"},
			{name: "report cannot be written", options: command.Options{Task: "triage", Output: "/nowhere/at/all"},
				code: command.ExitUnusable, complain: "the report cannot be written"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				std, _, errs := streams()
				runner, recorder := cmp.Or(tc.runner, &fakeRunner{}), cmp.Or(tc.recorder, &fakeRecorder{})
				code := command.Run(t.Context(), suites(), runner, recorder, tc.options, std)
				require.Equal(t, tc.code, code, errs.String())
				require.ElementsMatch(t, tc.asked, runner.asked)
				require.Len(t, recorder.stored, tc.stored)
				require.Contains(t, errs.String(), tc.complain)
			})
		}
	})

	t.Run("PassesOnModeAndRuns", func(t *testing.T) {
		t.Parallel()
		std, _, _ := streams()
		runner := &fakeRunner{}
		command.Run(t.Context(), suites(), runner, &fakeRecorder{}, command.Options{Runs: 7}, std)
		require.Equal(t, report.Live, runner.options.Mode)
		require.Equal(t, 7, runner.options.Runs)
		require.NotNil(t, runner.options.Slots)
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
}

func TestFurtherReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page, junit := filepath.Join(dir, "r.html"), filepath.Join(dir, "r.xml")
	std, out, errs := streams()
	code := command.Run(t.Context(), suites(), &fakeRunner{}, &fakeRecorder{},
		command.Options{Reports: []string{"html=" + page, "junit=" + junit}}, std)
	require.Equal(t, command.ExitPassed, code, errs.String())
	require.Contains(t, out.String(), "TASK")
	for file, begin := range map[string]string{page: "<!DOCTYPE html>", junit: "<?xml"} {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(raw), begin)
	}
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
		for _, f := range []report.Format{report.JUnit, report.HTML} {
			require.Equal(t, command.ExitUnusable, command.ShowStatus(t.Context(), suites(), check, command.Options{Format: f}, std))
		}
	})
}
