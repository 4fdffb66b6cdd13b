package contracts_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/command"
	"github.com/docket-gateway/docket/contracts/contracttest"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/demo"
)

var (
	live   = flag.Bool("contracts.live", false, "ask the demo instead of replaying its cassettes")
	update = flag.Bool("contracts.update", false, "write the goldens of the shipped tasks")
)

// shippedTasks is the folder beside the tests, which the binary embeds.
const shippedTasks = "tasks"

func shipped(targets ...string) contracttest.Options {
	o := contracttest.Options{Tasks: os.DirFS(shippedTasks), Targets: targets, Environ: []string{}}
	if *live {
		o.Mode, o.Concurrency = report.Live, 64 // the fax is silent for seconds
	}
	return o
}

// TestShippedContracts runs the shipped suites at the target that keeps them.
func TestShippedContracts(t *testing.T) {
	t.Parallel()
	contracttest.Run(t, shipped("demo/laser"))
}

// TestShippedContractsAreBroken by the targets that are made to break them, and by nothing else than that.
func TestShippedContractsAreBroken(t *testing.T) {
	t.Parallel()
	results, err := contracttest.Results(t.Context(), shipped("demo/inkjet", "demo/fax"))
	require.NoError(t, err)
	require.Len(t, results, 4)
	codes := map[string]string{"demo/inkjet": providers.CodeJammed, "demo/fax": providers.CodeIdleTimeout}
	for _, r := range results {
		require.False(t, r.Passed)
		require.Equal(t, report.Passed, r.Summary(report.CheckPrompt), r.Target)
		require.Equal(t, report.Failed, r.Summary(report.CheckSchema), r.Target)
		for _, f := range r.Failures() {
			require.Equal(t, codes[r.Target], f.Check.Code, "%s at %s: %s", r.Task, r.Target, f)
		}
	}
}

// TestShippedGoldens holds the goldens of the shipped tasks against what the demo prints, or writes them with -contracts.update. The
// shipped primary demo/inkjet jams on purpose and gives no answer, so here demo/laser stands in for it.
func TestShippedGoldens(t *testing.T) {
	t.Parallel()
	suites, err := contracts.LoadSuites(os.DirFS(shippedTasks))
	require.NoError(t, err)
	require.Len(t, suites, 2)
	registry, err := providers.NewRegistry([]providers.Config{demo.Config()}, map[string]providers.Factory{
		demo.Kind: func(c providers.Config) (providers.Provider, error) { return demo.NewWithDelay(c, 0) },
	})
	require.NoError(t, err)
	runner := contracts.NewRunner(contracts.Deps{Targets: contracts.FromRegistry(registry), RanBy: "go test"})
	for _, s := range suites {
		t.Run(s.Task.Name, func(t *testing.T) {
			t.Parallel()
			task := *s.Task
			task.Target = "demo/laser"
			s.Task = &task
			res, ev, err := runner.Run(t.Context(), s, task.Target, contracts.Options{})
			require.NoError(t, err)
			u, err := contracts.NewUpdate(ev, res)
			require.NoError(t, err)
			require.Empty(t, u.Refused)
			for _, one := range s.Cases {
				for _, target := range registry.Targets() {
					f, err := contracts.PromptGolden(s.Task, one, target.ID)
					require.NoError(t, err)
					u.Files = append(u.Files, f)
				}
			}
			for _, f := range u.Files {
				hold(t, filepath.Join(shippedTasks, s.Task.Name), f)
			}
		})
	}
}

func hold(t *testing.T, dir string, f contracts.GoldenFile) {
	t.Helper()
	if *update {
		_, err := command.WriteGolden(dir, f)
		require.NoError(t, err)
		return
	}
	path := filepath.Join(dir, filepath.FromSlash(f.Path))
	if f.Content == nil {
		require.NoFileExists(t, path)
		return
	}
	raw, err := os.ReadFile(path)
	require.NoError(t, err, "go test ./contracts -run Goldens -contracts.update writes it")
	require.Equal(t, string(f.Content), strings.ReplaceAll(string(raw), "\r\n", "\n"), path)
}
