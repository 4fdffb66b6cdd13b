package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client keeps no connection, so that none is left when the tests end.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// line waits for a line of the log that holds the text.
func line(t *testing.T, log *logtest.Buffer, text string) (found string) {
	t.Helper()
	await.Until(t, fmt.Sprintf("a line with %q", text), func() bool {
		lines := log.Lines()
		i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, text) })
		if i >= 0 {
			found = lines[i]
		}
		return i >= 0
	}, log.String)
	return found
}

// unproved is the built-in configuration, with a new database of the test's own and any port.
func unproved(dir string) *config.Config {
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.Database = config.NewDSN("sqlite://" + filepath.Join(dir, "docket.db"))
	return cfg
}

// proved is a database that a gateway has proved the demo in.
var proved = sync.OnceValues(func() (_ []byte, err error) {
	dir, err := os.MkdirTemp("", "docket-app-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g, err := Start(context.Background(), unproved(dir), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := g.Stop(context.Background()); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "docket.db"))
})

// defaults is the built-in configuration, with a proved database of the test's own and any port.
func defaults(t *testing.T) *config.Config {
	t.Helper()
	dir := t.TempDir()
	database, err := proved()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docket.db"), database, 0o600))
	return unproved(dir)
}

// serve runs a gateway until the test ends.
func serve(t *testing.T, cfg *config.Config) *running {
	t.Helper()
	log := &logtest.Buffer{}
	g, err := Start(t.Context(), cfg, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err, log.String())
	r := &running{Gateway: g, addr: g.Addr(), log: log}
	r.stop = sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), r.bound)
		defer cancel()
		return g.Stop(ctx)
	})
	t.Cleanup(func() { require.NoError(t, r.stop()) })
	return r
}

// running is a gateway under test.
type running struct {
	*Gateway

	addr  string
	log   *logtest.Buffer
	bound time.Duration // of stop
	stop  func() error
}

func (r *running) unready(t *testing.T) func() bool {
	t.Helper()
	return func() bool {
		status, _ := get(t, r.addr, "/readyz")
		return status == http.StatusServiceUnavailable
	}
}

// get returns the status and the body.
func get(t *testing.T, g string, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g+path, nil)
	require.NoError(t, err)
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// query sends a GraphQL document and returns its data.
func query(t *testing.T, addr, document string, variables any) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": document, "variables": variables})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/graphql", bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	status, text := do(t, req)
	require.Equal(t, http.StatusOK, status, text)
	require.NotContains(t, text, `"errors"`)
	return text
}

const create = `mutation($input: CreateJobInput!) { createJob(input: $input) {
	__typename
	... on CreateJobSuccess { job { id state } }
	... on InvalidInput { issues { path message } }
} }`

// job creates a job of the task triage at a target, or at the route's if it is empty, and returns its id.
func job(t *testing.T, addr, key, target string) string {
	t.Helper()
	input := map[string]any{"idempotencyKey": key, "task": "triage", "input": map[string]any{"text": "I was charged twice."}}
	if target != "" {
		input["target"] = target
	}
	var out struct {
		Data struct {
			CreateJob struct{ Job struct{ ID string } }
		}
	}
	text := query(t, addr, create, map[string]any{"input": input})
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	require.NotEmpty(t, out.Data.CreateJob.Job.ID, text)
	return out.Data.CreateJob.Job.ID
}

// becomes waits until the job's document holds the text.
func becomes(t *testing.T, addr, id, text string) {
	t.Helper()
	var got string
	await.Until(t, "the job becomes "+text, func() bool {
		got = query(t, addr, `query($id: ID!) { job(id: $id) { state result attempts { target reason state error { code } } } }`, map[string]any{"id": id})
		return strings.Contains(got, text)
	}, func() string { return got })
}

// write makes a file under dir.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// shippedOnDisk is a copy of the shipped tasks, for goldens of another target.
func shippedOnDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, contracts.ShippedTasks()))
	return dir
}
