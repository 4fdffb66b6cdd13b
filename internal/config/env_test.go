package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEnvironmentOverridesFile(t *testing.T) {
	t.Parallel()
	cfg, err := Load(write(t, "listen: 127.0.0.1:1\nshutdown_timeout: 1s\nlimits: {body: 2MiB}\n"), []string{
		"DOCKET_LISTEN=127.0.0.1:2", "DOCKET_DATABASE=postgres://u:p@h/db", "DOCKET_AUTH_MODE=dev", "DOCKET_SHUTDOWN_TIMEOUT=2s",
		"DOCKET_LIMITS_BODY=3MiB", "DOCKET_LIMITS_PARSER_TOKENS=500", "DOCKET_LOG_LEVEL=debug", "DOCKET_LIMITS_DEPTH=3",
	})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:2", cfg.Listen)
	require.Equal(t, "postgres://u:p@h/db", cfg.Database.Reveal())
	require.Equal(t, 2*time.Second, cfg.ShutdownTimeout)
	require.Equal(t, Bytes(3<<20), cfg.Limits.Body)
	require.Equal(t, 500, cfg.Limits.ParserTokens)
	require.Equal(t, "debug", cfg.Log.Level)
	require.Equal(t, 3, cfg.Limits.Depth)
	require.Empty(t, cfg.Warnings)
}

func TestEnvironmentReachesEveryScalarByItsOwnName(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	eachScalar(reflect.ValueOf(Default()).Elem(), "", func(path string, _ reflect.Value) {
		name := EnvName(path)
		require.Empty(t, seen[name], "%s stands for two keys", name)
		require.NotEqual(t, envConfig, name)
		seen[name] = path
	})
	require.Equal(t, "auth.mode", seen["DOCKET_AUTH_MODE"])
	require.GreaterOrEqual(t, len(seen), 14)
}

func TestEnvironmentIsValidatedAndNamed(t *testing.T) {
	t.Parallel()
	_, err := Load(write(t, "limits: {depth: 5}\n"), []string{"DOCKET_LIMITS_DEPTH=0", "DOCKET_LEASE=1h"})
	require.ErrorContains(t, err, "DOCKET_LIMITS_DEPTH: limits.depth: 0 is not between")
	require.ErrorContains(t, err, "DOCKET_LEASE: lease: 1h0m0s is not between")
	_, err = Load(write(t, ""), []string{"DOCKET_LIMITS_DEPTH=many"})
	require.ErrorContains(t, err, `DOCKET_LIMITS_DEPTH: limits.depth: "many" is not a whole number`)
}

func TestEmptyVariableCountsAsNotSet(t *testing.T) {
	t.Parallel()
	cfg, err := Load(write(t, "limits: {depth: 5}\n"), []string{"DOCKET_LIMITS_DEPTH="})
	require.NoError(t, err)
	require.Equal(t, 5, cfg.Limits.Depth)
}

func TestUnknownVariablesAreWarnedOfByNameOnly(t *testing.T) {
	t.Parallel()
	cfg, err := Load(write(t, ""), []string{"DOCKET_PORT=tcp://10.0.0.1:80", "DOCKET_LIMITS_BODDY=1", "DOCKET_TEST_DATABASE=x", "PATH=/bin"})
	require.NoError(t, err)
	require.Len(t, cfg.Warnings, 2)
	require.Contains(t, cfg.Warnings[0], "DOCKET_LIMITS_BODDY")
	require.Contains(t, cfg.Warnings[1], "DOCKET_PORT")
	require.NotContains(t, cfg.Warnings[1], "10.0.0.1")
}

func TestListElementsAreNotOverridable(t *testing.T) {
	t.Parallel()
	cfg, err := Load(write(t, ""), []string{"DOCKET_TASKS=./elsewhere", "DOCKET_PROVIDERS_0_NAME=x"})
	require.NoError(t, err)
	require.Equal(t, Default().Tasks, cfg.Tasks)
	require.Len(t, cfg.Warnings, 2)
}

func TestKeysComeFromTheNamedVariable(t *testing.T) {
	t.Parallel()
	path := write(t, `providers:
  - {name: a, kind: openai, base_url: "https://a.example/v1", api_key_env: DOCKET_A_KEY, models: [{name: m}]}
  - {name: b, kind: openai, base_url: "https://b.example/v1", api_key_env: B_KEY, models: [{name: m}]}
`)
	cfg, err := Load(path, []string{"DOCKET_A_KEY=sk-a\n"})
	require.NoError(t, err)
	require.Equal(t, "sk-a", cfg.Providers[0].APIKey.Reveal())
	require.Empty(t, cfg.Warnings, "a key's variable is no unknown setting")
	require.False(t, cfg.Providers[1].APIKey.IsSet())
	usable, missing := cfg.Usable()
	require.Equal(t, []Missing{{"b", "providers[1].api_key_env: the environment variable B_KEY is not set"}}, missing)
	require.Equal(t, cfg.Providers[:1], usable.Providers)
	require.Len(t, cfg.Providers, 2, "the configuration itself stays")

	for _, key := range []string{"sk-\nb", "sk b", "sk-\u00fc"} {
		cfg, err = Load(path, []string{"DOCKET_A_KEY=sk-a", "B_KEY=" + key})
		require.NoError(t, err)
		usable, missing = cfg.Usable()
		require.Equal(t, []Missing{{"b", "providers[1].api_key_env: the environment variable B_KEY " + notSendable}}, missing)
		require.Len(t, usable.Providers, 1)
	}

	cfg, err = Load(path, []string{"DOCKET_A_KEY=sk-a", "B_KEY=sk-b"})
	require.NoError(t, err)
	_, missing = cfg.Usable()
	require.Empty(t, missing)
}
