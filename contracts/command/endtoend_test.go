package command_test

import (
	"bytes"
	"context"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/command"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/demo"
)

// machine is a fresh database with the built-in demo.
type machine struct {
	store *store.Store
	files fstest.MapFS // the shipped tasks, to be changed
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	st, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "docket.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	require.NoError(t, st.Migrate(t.Context()))
	m := &machine{store: st, files: fstest.MapFS{}}
	shipped := contracts.ShippedTasks()
	require.NoError(t, fs.WalkDir(shipped, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(shipped, path)
		m.files[path] = &fstest.MapFile{Data: raw}
		return err
	}))
	return m
}

// start loads the files and the demo as a process does, with its configuration changed by change if given.
func (m *machine) start(t *testing.T, change func(*providers.Config)) ([]contracts.Suite, *contracts.Runner, command.CheckFunc) {
	t.Helper()
	suites, err := contracts.LoadSuites(m.files)
	require.NoError(t, err)
	config := demo.Config()
	if change != nil {
		change(&config)
	}
	registry, err := providers.NewRegistry([]providers.Config{config}, map[string]providers.Factory{
		demo.Kind: func(c providers.Config) (providers.Provider, error) { return demo.NewWithDelay(c, 0) },
	})
	require.NoError(t, err)
	digests, err := contracts.NewDigests(registry, suites)
	require.NoError(t, err)
	g := gate.New(digests, nil)
	check := func(ctx context.Context, task *tasks.Definition, target string) (gate.Decision, error) {
		return g.Check(ctx, m.store.Client(), task, target)
	}
	return suites, contracts.NewRunner(contracts.Deps{Targets: contracts.FromRegistry(registry), RoundTrips: straight{}, Faults: harmless{}, RanBy: "start"}), check
}

func TestFreshMachine(t *testing.T) {
	t.Parallel()
	every := (*tasks.Definition).Route
	states := func(t *testing.T, m *machine, change func(*providers.Config)) map[string]gate.State {
		t.Helper()
		suites, _, check := m.start(t, change)
		out := map[string]gate.State{}
		for _, s := range suites {
			for _, target := range s.Task.Route() {
				d, err := check(t.Context(), s.Task, target)
				require.NoError(t, err)
				out[s.Task.Name+" "+target] = d.State
			}
		}
		return out
	}
	proven := map[string]gate.State{
		"invoice demo/inkjet": gate.Failed, "invoice demo/laser": gate.Passed,
		"triage demo/inkjet": gate.Failed, "triage demo/laser": gate.Passed,
	}
	prove := func(t *testing.T) *machine {
		t.Helper()
		m := newMachine(t)
		suites, runner, check := m.start(t, nil)
		ran, err := command.Refresh(t.Context(), suites, every, check, runner, gate.NewRecorder(m.store.Client(), nil))
		require.NoError(t, err)
		require.Len(t, ran, 4)
		require.Equal(t, proven, states(t, m, nil))
		return m
	}

	t.Run("OpensTheLaserAfterItsContractsRan", func(t *testing.T) {
		t.Parallel()
		m := prove(t)
		suites, runner, check := m.start(t, nil)
		ran, err := command.Refresh(t.Context(), suites, func(*tasks.Definition) []string { return []string{"demo/laser"} }, check, runner, gate.NewRecorder(m.store.Client(), nil))
		require.NoError(t, err)
		require.Empty(t, ran, "a fresh pass is not run again")
	})

	t.Run("StaysOpenWhenNothingThatCountsChanged", func(t *testing.T) {
		t.Parallel()
		m := prove(t)
		m.files["triage/task.yaml"].Data = append([]byte("# a comment\n"), m.files["triage/task.yaml"].Data...)
		m.files["triage/README.md"] = &fstest.MapFile{Data: []byte("notes")}
		require.Equal(t, proven, states(t, m, func(c *providers.Config) { c.Linger = time.Minute }))
	})

	t.Run("ClosesForTheOneTaskThatChanged", func(t *testing.T) {
		t.Parallel()
		for _, file := range []string{
			"triage/system.tmpl", "triage/prompt.tmpl", "triage/output.schema.json", "triage/input.schema.json", "triage/task.yaml", "triage/cases/thanks.json",
		} {
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				m := prove(t)
				m.files[file].Data = changed(t, file, m.files[file].Data)
				got := states(t, m, nil)
				require.Equal(t, gate.Stale, got["triage demo/laser"])
				require.Equal(t, gate.Passed, got["invoice demo/laser"])
			})
		}
	})

	t.Run("ClosesWhenTheProviderIsConfiguredOtherwise", func(t *testing.T) {
		t.Parallel()
		got := states(t, prove(t), func(c *providers.Config) { c.IdleTimeout++ })
		require.Equal(t, gate.Stale, got["triage demo/laser"])
		require.Equal(t, gate.Stale, got["invoice demo/laser"])
	})
}

// changed makes a small change that means something.
func changed(t *testing.T, file string, data []byte) []byte {
	t.Helper()
	small := map[string][2]string{
		"task.yaml":          {"temperature: 0", "temperature: 0.1"},
		"input.schema.json":  {"20000", "20001"},
		"output.schema.json": {"200", "201"},
		"thanks.json":        {"a nice day", "a good day"},
	}
	c, ok := small[filepath.Base(file)]
	if !ok {
		return append(data, ' ') // a template
	}
	require.Contains(t, string(data), c[0])
	return bytes.Replace(data, []byte(c[0]), []byte(c[1]), 1)
}
