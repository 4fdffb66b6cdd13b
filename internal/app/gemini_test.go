package app

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/gemini/geminitest"
	"github.com/docket-gateway/docket/providers/providertest"
)

// Contract runs against the Gemini API's protocol, from the configuration to the report.
func TestContractsRunWithGemini(t *testing.T) {
	t.Parallel()
	server, url := providertest.StartOf(t, geminitest.Stream())
	cfg := write(t, t.TempDir(), "docket.yaml", `database: sqlite://`+filepath.Join(t.TempDir(), "docket.db")+`
tasks: [`+shippedOnDisk(t)+`]
providers:
  - {name: gemini, kind: gemini, base_url: "`+url+`", api_key_env: K, models: [{name: m, reasoning: true}]}
`)
	environ := []string{"K=secret-key"}
	code, stdout, stderr := runs(t, environ, "migrate", "up", "--config", cfg)
	require.Zero(t, code, stdout+stderr)
	for _, task := range []string{"triage", "invoice"} {
		code, stdout, stderr = runs(t, environ, "contracts", "run", "--config", cfg, "--task", task, "--target", "gemini/m", "--update", "--runs", "1", "--format", "json")
		require.Contains(t, stdout, `"target": "gemini/m"`, stderr)
		require.Zero(t, code, stdout+stderr)
		require.NotContains(t, stdout+stderr, "secret-key")
	}
	require.NotEmpty(t, server.Log())
	for _, e := range server.Log() {
		require.Equal(t, http.MethodPost+" /v1/models/m:streamGenerateContent", e.Method+" "+e.Path)
		require.Contains(t, string(e.Body), `"responseJsonSchema":{`)
		require.NotContains(t, string(e.Body), `"temperature"`)
		require.Equal(t, "secret-key", e.Header.Get("X-Goog-Api-Key"))
	}

	_, stdout, stderr = runs(t, nil, "contracts", "status", "--config", cfg)
	require.Contains(t, stdout, "MISSING", "what sends nothing needs no key: %s", stderr)
}
