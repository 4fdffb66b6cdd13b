package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/providers"
)

// TestCompatibleServersHaveSettings: what is left out is what most servers take, and a default that is written out is no change.
func TestCompatibleServersHaveSettings(t *testing.T) {
	t.Parallel()
	targets := func(settings string) (providers.Target, providers.Target) {
		path := filepath.Join(t.TempDir(), "docket.yaml")
		require.NoError(t, os.WriteFile(path, []byte(`providers:
  - name: local
    kind: openai-compatible
    base_url: http://127.0.0.1:1/v1
`+settings), 0o600))
		cfg, err := config.Load(path, nil)
		require.NoError(t, err)
		r, err := newRegistry(cfg)
		require.NoError(t, err)
		return r.Targets()[0], r.Targets()[1]
	}
	qwen, o3 := targets("    models: [{name: qwen3}, {name: openai/o3}]\n")
	require.False(t, qwen.Model.Reasoning)
	require.True(t, o3.Model.Reasoning, "by its name")

	same, _ := targets("    response_format: json_schema\n    stream_usage: true\n    models: [{name: qwen3, reasoning: false}, {name: openai/o3}]\n")
	require.Equal(t, qwen.Model, same.Model)
	require.Equal(t, qwen.Config, same.Config)

	qwen, o3 = targets(`    response_format: json_object
    stream_usage: false
    max_tokens_field: max_completion_tokens
    models: [{name: qwen3, reasoning: true}, {name: openai/o3, reasoning: false}]
`)
	require.True(t, qwen.Model.Reasoning)
	require.False(t, o3.Model.Reasoning, "the setting has the last word")
	require.Equal(t, []any{providers.FormatObject, true, providers.FieldMaxCompletionTokens},
		[]any{qwen.Config.ResponseFormat, qwen.Config.OmitStreamUsage, qwen.Config.MaxTokensField})
}
