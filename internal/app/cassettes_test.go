package app

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/providers/providertest"
)

// Recorded with a key at a server that is there, replayed without both.
func TestContractsAreRecordedAndReplayed(t *testing.T) {
	t.Parallel()
	const key = "sk-canary-0123456789abcdef"
	fake := providertest.NewServer()
	h := httptest.NewUnstartedServer(nil)
	fake.Configure(h.Config)
	h.Start()
	stop := func() { fake.Close(); h.CloseClientConnections(); h.Close() }
	t.Cleanup(stop)

	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "tasks"), contracts.ShippedTasks()))
	cfg := write(t, dir, "docket.yaml", `database: sqlite://`+filepath.Join(dir, "docket.db")+`
tasks: ["`+filepath.Join(dir, "tasks")+`"]
providers:
  - {name: local, kind: openai-compatible, base_url: "`+h.URL+`/v1", api_key_env: K, models: [{name: m}]}
`)
	with := func(environ []string, mode string, more ...string) (code int, stdout, stderr string) {
		return runs(t, environ, append([]string{"contracts", "run", "--config", cfg, "--task", "triage", "--target", "local/m", "--mode", mode, "--format", "json"}, more...)...)
	}
	keyless := []string{}
	code, _, stderr := runs(t, keyless, "migrate", "up", "--config", cfg)
	require.Zero(t, code, stderr)

	code, _, stderr = with(keyless, "replay")
	require.Equal(t, 2, code, "nothing was recorded")
	require.Contains(t, stderr, "there is no cassette")
	require.Contains(t, stderr, "docket contracts run --mode record --task triage --target local/m")
	code, _, stderr = with(keyless, "record")
	require.Equal(t, 2, code, "recording needs the key")
	require.Contains(t, stderr, "K is not set")

	recorded, report, stderr := with([]string{"K=" + key}, "record")
	require.NotEqual(t, 2, recorded, stderr)
	require.Contains(t, report, `"mode": "record"`)
	files, err := filepath.Glob(filepath.Join(dir, "tasks", "triage", "cassettes", "local@m", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(text), key)
		require.NotContains(t, string(text), "Authorization")
	}
	for _, e := range fake.Log() {
		require.Equal(t, http.MethodPost, e.Method)
		require.Equal(t, "Bearer "+key, e.Header.Get("Authorization"))
	}
	sent := len(fake.Log())
	require.NotZero(t, sent)
	stop()

	replayed, report, stderr := with(keyless, "replay")
	require.Equal(t, recorded, replayed, stderr)
	require.Contains(t, report, `"mode": "replay"`)
	require.Len(t, fake.Log(), sent)
	code, _, stderr = with(keyless, "replay", "--runs", "9")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--runs 9")

	require.NoError(t, os.WriteFile(files[0], []byte(strings.Repeat("x", 9)), 0o600))
	code, _, stderr = with(keyless, "replay")
	require.Equal(t, 2, code, "a broken cassette is no failed check")
	require.Contains(t, stderr, files[0])
}

func TestBuiltInTasksCannotBeRecorded(t *testing.T) {
	t.Parallel()
	code, _, stderr := runs(t, fresh(t), "contracts", "run", "--task", "triage", "--target", "demo/laser", "--mode", "record")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "the task triage is built into the program")
	require.Contains(t, stderr, "tasks: in docket.yaml")
}
