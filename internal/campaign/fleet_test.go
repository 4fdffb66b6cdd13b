package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/goldens"
	"github.com/docket-gateway/docket/internal/pgtest"
	"github.com/docket-gateway/docket/internal/program"
)

// lease is short, so that the campaign sees many orphans, and long enough for a busy machine.
const lease = 3 * time.Second

// fleet is the gateways of a run, their database and what lies between.
type fleet struct {
	program   string
	env       []string
	cluster   *pgtest.Cluster // nil for SQLite
	database  string          // its address without a proxy
	providers map[string]*wire
	members   []*member
}

// member is one gateway, through all of its processes.
type member struct {
	config   string
	database *wire // nil for SQLite

	mu      sync.Mutex
	process *program.Process // nil while there is none
	paused  bool
	logs    []string // of processes that are gone
}

// newFleet sets everything up and starts nothing.
func newFleet(t *testing.T, path string, env []string, postgres bool, size int, providers map[string]*provider) *fleet {
	t.Helper()
	f := &fleet{program: path, env: env, providers: map[string]*wire{}}
	w := startWires(t)
	urls := map[string]string{}
	for name, p := range providers {
		u, err := url.Parse(p.url)
		require.NoError(t, err)
		f.providers[name] = w.lay(t, name, u.Host)
		u.Host = f.providers[name].addr()
		urls[name] = u.String()
	}
	tasks := writeTasks(t)
	if postgres {
		f.cluster = pgtest.StartFor(t)
		dsn, err := f.cluster.CreateDatabase(t.Context(), "docket")
		require.NoError(t, err)
		f.database = dsn
	} else {
		f.database, size = "sqlite://"+filepath.Join(t.TempDir(), "docket.db"), 1
	}
	for i := range size {
		m := &member{}
		address := f.database
		if postgres {
			u, err := url.Parse(f.database)
			require.NoError(t, err)
			m.database = w.lay(t, fmt.Sprint("database of ", i), u.Host)
			u.Host = m.database.addr()
			q := u.Query()
			q.Set("connect_timeout", "2")
			q.Set("pool_max_conns", "16")
			u.RawQuery = q.Encode()
			address = u.String()
		}
		m.config = writeConfig(t, address, tasks, urls)
		f.members = append(f.members, m)
	}
	t.Cleanup(func() {
		for i, m := range f.members {
			require.NoError(t, m.kill())
			if t.Failed() {
				m.mu.Lock()
				t.Logf("the log of gateway %d:\n%s", i, tail(strings.Join(m.logs, ""), 20_000))
				m.mu.Unlock()
			}
		}
	})
	return f
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func writeConfig(t *testing.T, database, tasks string, urls map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docket.yaml")
	const providerText = `
  - name: %s
    kind: openai-compatible
    base_url: %s
    ack_timeout: %s
    idle_timeout: %s
    total_timeout: %s
    linger: %s
    max_concurrency: 100
    circuit_breaker: {failures: 8, open_for: 1s}
    presume_dead_after: %s
    models: [%s]
`
	text := fmt.Sprintf("listen: 127.0.0.1:0\ndatabase: %q\ntasks: [%q]\nlease: %s\nshutdown_timeout: 10s\nlog: {format: json}\nproviders:",
		database, tasks, lease)
	text += fmt.Sprintf(providerText, "fake", urls["fake"], ackTimeout, idleTimeout, totalTimeout, linger, time.Duration(0),
		"{name: primary}, {name: second}, {name: third}, {name: unproved}")
	text += fmt.Sprintf(providerText, "mortal", urls["mortal"], ackTimeout, idleTimeout, totalTimeout, linger, 2*time.Second, "{name: one}")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// outputSchema is the tasks'.
const outputSchema = `{"type": "object", "additionalProperties": false, "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}`

func writeTasks(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, race := range map[string]string{echo: "allowed", strict: "forbidden"} {
		folder := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Join(folder, "cases"), 0o700))
		for file, text := range map[string]string{
			"task.yaml": "name: " + name + "\nversion: \"1\"\ntarget: " + primary + "\nfallbacks: [" + second + ", " + unproved + ", " + mortal + ", " + third + "]\nrace: " + race +
				"\nretry: {max: 1, base: 10ms, cap: 500ms}\ncontract: {runs: 1}\n",
			"input.schema.json":  `{"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}`,
			"output.schema.json": outputSchema,
			"system.tmpl":        "Answer with JSON: {{.Schema}}\n",
			"prompt.tmpl":        "{{json .Input}}\n",
			"cases/one.json":     `{"input": {"text": "one"}, "assert": ["output.text != ''"]}`,
		} {
			require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
		}
	}
	require.NoError(t, goldens.Write(dir, []byte(`{"text": "x"}`), allTargets...))
	return dir
}

// prove runs the contracts of all targets, as a release check does, and says which targets have passed.
func (f *fleet) prove(t *testing.T) map[string]bool {
	t.Helper()
	out, code := f.run(t, "contracts", "run", "--config", f.members[0].config, "--format", "json")
	require.Equal(t, 1, code, "one of them fails: %s", out)
	var report struct {
		Results []struct {
			Target string
			Passed bool
		}
	}
	require.NoError(t, json.Unmarshal(out, &report), "%s", out)
	require.Len(t, report.Results, 2*len(allTargets))
	proved := map[string]bool{}
	for _, r := range report.Results {
		before, seen := proved[r.Target]
		proved[r.Target] = r.Passed && (before || !seen)
	}
	require.Equal(t, map[string]bool{primary: true, second: true, third: true, unproved: false, mortal: true}, proved)
	return proved
}

// run runs a command of Docket's on the first gateway's configuration.
func (f *fleet) run(t *testing.T, args ...string) (out []byte, exitCode int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), f.program, args...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return out, cmd.ProcessState.ExitCode()
}

// start starts every gateway.
func (f *fleet) start(ctx context.Context) error {
	var errs []error
	for _, m := range f.members {
		errs = append(errs, f.ensure(ctx, m))
	}
	return errors.Join(errs...)
}

// ensure starts a process unless there is one. While the database is away a process ends at once; it is started again.
func (f *fleet) ensure(ctx context.Context, m *member) error {
	for {
		m.mu.Lock()
		if m.process == nil {
			p, err := program.Start(ctx, program.Command{Path: f.program, Env: f.env, Args: []string{"serve", "--config", m.config}})
			if err != nil {
				m.logs = append(m.logs, err.Error())
				m.mu.Unlock()
				if ctx.Err() != nil {
					return err
				}
				continue
			}
			m.process = p
		}
		m.mu.Unlock()
		return nil
	}
}

// urls are those of the gateways that there are.
func (f *fleet) urls() []string {
	var out []string
	for _, m := range f.members {
		m.mu.Lock()
		if m.process != nil && !m.paused {
			out = append(out, m.process.URL)
		}
		m.mu.Unlock()
	}
	return out
}

// take removes the process, for it to be ended.
func (m *member) take() *program.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.process
	m.process = nil
	return p
}

func (m *member) keep(p *program.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.logs = append(m.logs, fmt.Sprintf("--- process %d\n%s", p.PID(), p.Log()))
}

// kill is kill -9.
func (m *member) kill() error {
	p := m.take()
	if p == nil {
		return nil
	}
	defer m.keep(p)
	return p.Kill()
}

// terminate asks nicely.
func (m *member) terminate(ctx context.Context) error {
	p := m.take()
	if p == nil {
		return nil
	}
	defer m.keep(p)
	if err := p.Terminate(ctx); err != nil {
		return errors.Join(err, p.Kill())
	}
	return nil
}

// pause stops the process where it is, as a machine that swaps or a long collection does, until the signal.
func (m *member) pause(ctx context.Context) error {
	m.mu.Lock()
	p := m.process
	m.paused = p != nil
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	<-ctx.Done()
	m.mu.Lock()
	m.paused = false
	m.mu.Unlock()
	return p.Signal(syscall.SIGCONT)
}
