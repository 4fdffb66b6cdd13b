package balancer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/pgtest"
	"github.com/docket-gateway/docket/internal/program"
)

var databases = pgtest.New()

// folder is what the program is built into, gone when the tests are over.
var folder string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docket-balancer-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	folder = dir
	databases.Main(m)
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// built is Docket without the race detector: it is watched from outside here.
var built = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return program.Build(ctx, folder)
})

// replica is one Docket and the wire to it, whose address stays the same through all of its processes.
type replica struct {
	*wire

	name    string
	config  string
	process *program.Process
}

// startReplicas makes two on one PostgreSQL.
func startReplicas(t *testing.T, database string) []*replica {
	t.Helper()
	dir := t.TempDir()
	writeTask(t, filepath.Join(dir, "note"))
	config := filepath.Join(dir, "docket.yaml")
	// Health checks notice within shutdown_delay.
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil,
		"listen: 127.0.0.1:0\ndatabase: %q\ndatabase_direct: %q\ntasks: [%q]\nlease: 2s\nshutdown_timeout: 10s\nshutdown_delay: 4s\nlog: {format: json}\n",
		pgtest.Named(t, database, "pooled"), pgtest.Named(t, database, "direct"), dir), 0o600))
	var all []*replica
	for i := range 2 {
		all = append(all, &replica{wire: layWire(t), name: fmt.Sprint("replica", i+1), config: config})
	}
	t.Cleanup(func() {
		for _, r := range all {
			if r.process == nil {
				continue
			}
			require.NoError(t, r.process.Kill())
			if t.Failed() {
				log := r.process.Log()
				t.Logf("the log of %s:\n%s", r.name, log[max(0, len(log)-5000):])
			}
		}
	})
	ensure(t, all)
	return all
}

// writeTask makes a task that a simulated provider answers at once; its target demo/fax never does.
func writeTask(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "cases"), 0o700))
	for file, text := range map[string]string{
		"task.yaml":          "name: note\nversion: \"1\"\ntarget: demo/laser\nretry: {max: 0}\n",
		"input.schema.json":  `{"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}`,
		"output.schema.json": `{"type": "object", "additionalProperties": false, "required": ["text"], "properties": {"text": {"type": "string"}}}`,
		"system.tmpl":        "Answer with JSON: {{.Schema}}\n",
		"prompt.tmpl":        "{{json .Input}}\n",
		"cases/one.json":     `{"input": {"text": "one"}, "assert": ["output.text != ''"]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
}

// ensure starts what does not run, and forgets what went over the wires before.
func ensure(t *testing.T, all []*replica) {
	t.Helper()
	path, err := built()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	var wait sync.WaitGroup
	errs := make([]error, len(all))
	for i, r := range all {
		if r.process == nil {
			wait.Go(func() {
				r.process, errs[i] = program.Start(ctx, program.Command{Path: path, Args: []string{"serve", "--config", r.config}})
			})
		}
	}
	wait.Wait()
	for i, r := range all {
		require.NoError(t, errs[i])
		r.cut()
		r.connect(t, strings.TrimPrefix(r.process.URL, "http://"))
	}
}

// kill is kill -9. From then on its machine refuses connections.
func (r *replica) kill(t *testing.T) {
	t.Helper()
	r.cut()
	require.NoError(t, r.process.Kill())
	r.process = nil
}

// direct is the replica without the balancer.
func (r *replica) direct() client { return client{r.process.URL} }

// listensPastAPooler looks at what the replicas' connections were last used for, by the names that the configuration gives
// them: a transaction pooler would take what is notified from those that are pooled.
func listensPastAPooler(t *testing.T, database string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	listening := func(name string) (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = $1 AND query ILIKE 'LISTEN%'`, name).Scan(&n))
		return n
	}
	// The bus and the queue, of each.
	await.Until(t, "all listen directly", func() bool { return listening("direct") == 4 })
	require.Zero(t, listening("pooled"))
}
