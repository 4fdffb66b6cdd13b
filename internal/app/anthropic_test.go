package app

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/anthropic/anthropictest"
	"github.com/docket-gateway/docket/providers/providertest"
)

// Contract runs against Anthropic's protocol, from the configuration to the report.
func TestContractsRunWithAnthropic(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ settings, sent, notSent string }{
		"Default": {"", `"output_config"`, `"tools"`},
		"Native":  {", structured_output: native", `"output_config"`, `"tools"`},
		"Tool":    {", structured_output: tool", `"tool_choice"`, `"output_config"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, url := providertest.StartOf(t, anthropictest.Messages())
			cfg := write(t, t.TempDir(), "docket.yaml", `database: sqlite://`+filepath.Join(t.TempDir(), "docket.db")+`
tasks: [`+shippedOnDisk(t)+`]
providers:
  - {name: anthropic, kind: anthropic, base_url: "`+url+`", api_key_env: K, models: [{name: claude-sonnet-4-5, max_output_tokens: 64000`+tc.settings+`}]}
`)
			environ := []string{"K=sk-1"}
			code, stdout, stderr := runs(t, environ, "migrate", "up", "--config", cfg)
			require.Zero(t, code, stdout+stderr)
			for _, task := range []string{"triage", "invoice"} {
				code, stdout, stderr = runs(t, environ, "contracts", "run", "--config", cfg, "--task", task, "--target", "anthropic/claude-sonnet-4-5", "--update", "--runs", "1", "--format", "json")
				require.Contains(t, stdout, `"target": "anthropic/claude-sonnet-4-5"`, stderr)
				require.Zero(t, code, stdout+stderr)
			}
			require.NotEmpty(t, server.Log())
			for _, e := range server.Log() {
				require.Equal(t, http.MethodPost+" /v1/messages", e.Method+" "+e.Path)
				require.Equal(t, "sk-1", e.Header.Get("X-Api-Key"))
				require.Contains(t, string(e.Body), tc.sent)
				require.NotContains(t, string(e.Body), tc.notSent)
			}
		})
	}
}
