package app

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/openai/openaitest"
	"github.com/docket-gateway/docket/providers/providertest"
)

// Contract runs against OpenAI's protocols, from the configuration to the report.
func TestContractsRunWithOpenAI(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		protocol providertest.Protocol
		settings string
		path     string
	}{
		"Responses":  {openaitest.Responses(), "", "/v1/responses"},
		"Background": {openaitest.NewAccount().Protocol(), "background: true, ", "/v1/responses"},
		"Chat":       {openaitest.Chat(), "api: chat, ", "/v1/chat/completions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, url := providertest.StartOf(t, tc.protocol)
			cfg := write(t, t.TempDir(), "docket.yaml", `database: sqlite://`+filepath.Join(t.TempDir(), "docket.db")+`
tasks: [`+shippedOnDisk(t)+`]
providers:
  - {name: openai, kind: openai, base_url: "`+url+`", api_key_env: K, `+tc.settings+`models: [{name: gpt-4o-mini}]}
`)
			environ := []string{"K=sk-1"}
			code, stdout, stderr := runs(t, environ, "migrate", "up", "--config", cfg)
			require.Zero(t, code, stdout+stderr)
			for _, task := range []string{"triage", "invoice"} {
				code, stdout, stderr = runs(t, environ, "contracts", "run", "--config", cfg, "--task", task, "--target", "openai/gpt-4o-mini", "--update", "--runs", "1", "--format", "json")
				require.Contains(t, stdout, `"target": "openai/gpt-4o-mini"`, stderr)
				require.Zero(t, code, stdout+stderr)
			}
			require.NotEmpty(t, server.Log())
			for _, e := range server.Log() {
				require.Equal(t, http.MethodPost+" "+tc.path, e.Method+" "+e.Path)
				require.Contains(t, string(e.Body), `"strict":true`, "the kind's default")
				require.NotEmpty(t, e.Key, "an identity of its own")
			}
		})
	}
}
