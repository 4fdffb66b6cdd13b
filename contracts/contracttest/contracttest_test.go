package contracttest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/contracttest"
	"github.com/docket-gateway/docket/contracts/report"
)

// builtIn is the demo's configuration, whatever the environment of the tests says.
var builtIn = []string{}

// Example decides about a release by what the built-in demo answers to a shipped task.
func Example() {
	results, err := contracttest.Results(context.Background(), contracttest.Options{
		Tasks: os.DirFS("../tasks"), Task: "triage", Targets: []string{"demo/laser", "demo/inkjet"}, Mode: report.Live, Environ: []string{},
	})
	if err != nil {
		fmt.Println("cannot say:", err)
		return
	}
	for _, r := range results {
		fmt.Println(r.Target, "may be released:", r.Passed)
		if failures := r.Failures(); len(failures) > 0 {
			fmt.Println(failures[0])
		}
	}
	// Output:
	// demo/laser may be released: true
	// demo/inkjet may be released: false
	// case "double-charge", run 1, check schema: JAMMED: expected: a complete answer; came: paper jam (simulated)
}

// envInner makes TestInner do its work: it is run by TestRun in a process of its own, since it fails on purpose.
const envInner = "CONTRACTTEST_INNER"

func TestInner(t *testing.T) {
	t.Parallel()
	targets := map[string][]string{"laser": {"demo/laser"}, "inkjet": {"demo/inkjet"}, "nobody": {"demo/nobody"}, "replay": {"demo/laser"}}[os.Getenv(envInner)]
	if targets == nil {
		return
	}
	o := contracttest.Options{Tasks: contracts.ShippedTasks(), Task: "triage", Targets: targets, Mode: report.Live, Environ: builtIn}
	if os.Getenv(envInner) == "replay" {
		o.Mode, o.Tasks = "", os.DirFS(os.Getenv("CONTRACTTEST_TASKS"))
	}
	contracttest.Run(t, o)
}

func TestRun(t *testing.T) {
	t.Parallel()
	inner := func(t *testing.T, what, tasks string) (output string, passed bool) {
		t.Helper()
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestInner$", "-test.v")
		cmd.Env = append(os.Environ(), envInner+"="+what, "CONTRACTTEST_TASKS="+tasks)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err = cmd.Run()
		return out.String(), err == nil
	}

	t.Run("NamesTaskTargetCaseAndCheck", func(t *testing.T) {
		t.Parallel()
		out, passed := inner(t, "laser", "")
		require.True(t, passed, out)
		for _, name := range []string{"double-charge/schema", "thanks/meaning", "outage/system/canary", "lost-parcel/round_trip", "target/budget/latency"} {
			require.Contains(t, out, "--- PASS: TestInner/triage/demo/laser/"+name+" ")
		}
		require.Contains(t, out, "not applicable: check faults")
	})

	t.Run("FailsByNameAndSaysWhy", func(t *testing.T) {
		t.Parallel()
		out, passed := inner(t, "inkjet", "")
		require.False(t, passed)
		require.Contains(t, out, "--- FAIL: TestInner/triage/demo/inkjet/thanks/schema ")
		require.Contains(t, out, "paper jam (simulated)")
		require.Contains(t, out, "--- FAIL: TestInner/triage/demo/inkjet/thanks/meaning ")
		require.Contains(t, out, "not run: case \"thanks\", run 1, check meaning")
		require.Contains(t, out, "--- PASS: TestInner/triage/demo/inkjet/thanks/prompt/rendering ")
	})

	t.Run("FailsWhereNothingCanBeSaid", func(t *testing.T) {
		t.Parallel()
		out, passed := inner(t, "nobody", "")
		require.False(t, passed)
		require.Contains(t, out, "triage at demo/nobody: the target is not configured")
	})

	t.Run("FailsWithoutCassettes", func(t *testing.T) {
		t.Parallel()
		tasks := t.TempDir()
		require.NoError(t, os.CopyFS(tasks, contracts.ShippedTasks()))
		require.NoError(t, os.RemoveAll(filepath.Join(tasks, "triage", "cassettes")))
		out, passed := inner(t, "replay", tasks)
		require.False(t, passed)
		require.Contains(t, out, "cassette")
	})
}

func TestResultsSayWhatCannotBeRun(t *testing.T) {
	t.Parallel()
	run := func(o contracttest.Options) ([]report.Result, error) {
		o.Tasks, o.Environ = contracts.ShippedTasks(), builtIn
		return contracttest.Results(t.Context(), o)
	}
	for name, tc := range map[string]struct {
		options contracttest.Options
		says    string
	}{
		"unknown task":   {contracttest.Options{Task: "nope"}, `there is no task "nope"`},
		"too many runs":  {contracttest.Options{Runs: contracts.MaxRuns + 1}, "the runs must be"},
		"unknown mode":   {contracttest.Options{Mode: "dream"}, "the mode cannot be run"},
		"a cap of words": {contracttest.Options{Mode: report.Live, MaxCost: "much"}, `the cap "much"`},
		"no such file":   {contracttest.Options{Config: filepath.Join(t.TempDir(), "none.yaml")}, "no such file"},
	} {
		results, err := run(tc.options)
		require.ErrorContains(t, err, tc.says, name)
		require.Empty(t, results, name)
	}
	results, err := run(contracttest.Options{Mode: report.Live, Task: "triage", Targets: []string{"demo/laser", "demo/nobody"}})
	require.ErrorIs(t, err, contracts.ErrUnknownTarget)
	require.Len(t, results, 1, "what could be run is there")
}
