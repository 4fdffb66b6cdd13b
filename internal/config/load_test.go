package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// minimal is a provider that is valid; tests spoil it.
const minimal = `providers:
  - name: local
    kind: openai-compatible
    base_url: http://127.0.0.1:1/v1
    models: [{name: m}]
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "docket.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// inEmptyDir is for tests of what happens without a file.
func inEmptyDir(t *testing.T) { t.Helper(); t.Chdir(t.TempDir()) }

func TestLoadWithoutFileGivesDefaults(t *testing.T) { //nolint:paralleltest // changes the working directory
	inEmptyDir(t)
	cfg, err := Load("", nil)
	require.NoError(t, err)
	require.Equal(t, Default(), cfg)
	require.Equal(t, "sqlite://docket.db", cfg.Database.Reveal())
	require.Equal(t, []string{"./contracts/tasks"}, cfg.Tasks)
	require.Len(t, cfg.Providers, 1)
	require.Equal(t, KindDemo, cfg.Providers[0].Kind)
}

func TestLoadReadsDocketYAMLOfTheWorkingDirectory(t *testing.T) { //nolint:paralleltest // changes the working directory
	inEmptyDir(t)
	require.NoError(t, os.WriteFile(DefaultPath, []byte("limits: {depth: 7}\n"), 0o600))
	cfg, err := Load("", nil)
	require.NoError(t, err)
	require.Equal(t, 7, cfg.Limits.Depth)
}

func TestLoadRefusesNamedFileThatIsMissing(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none.yaml")
	_, err := Load(missing, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Load("", []string{"DOCKET_CONFIG=" + missing})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLoadPrefersArgumentOverVariable(t *testing.T) {
	t.Parallel()
	cfg, err := Load(write(t, "limits: {depth: 7}\n"), []string{"DOCKET_CONFIG=" + write(t, "limits: {depth: 8}\n")})
	require.NoError(t, err)
	require.Equal(t, 7, cfg.Limits.Depth)
	cfg, err = Load("", []string{"DOCKET_CONFIG=" + write(t, "limits: {depth: 8}\n")})
	require.NoError(t, err)
	require.Equal(t, 8, cfg.Limits.Depth)
	require.Empty(t, cfg.Warnings)
}

func TestLoadOfEmptyFileGivesDefaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# nothing\n", "---\n"} {
		cfg, err := Load(write(t, text), nil)
		require.NoError(t, err, "%q", text)
		require.Equal(t, Default(), cfg)
	}
}

func TestLoadKeepsDefaultsOfKeysLeftOut(t *testing.T) {
	t.Parallel()
	cfg, err := Load(write(t, minimal+"limits: {depth: 9}\n"), nil)
	require.NoError(t, err)
	require.Equal(t, 9, cfg.Limits.Depth)
	require.Equal(t, Default().Limits.Body, cfg.Limits.Body)
	require.Len(t, cfg.Providers, 1, "a list takes the place of the default list")
	require.Equal(t, 10*time.Second, cfg.Providers[0].AckTimeout)
	require.Equal(t, 32, cfg.Providers[0].MaxConcurrency)
	require.Equal(t, CircuitBreaker{Failures: 5, OpenFor: time.Minute}, cfg.Providers[0].CircuitBreaker)
	cfg, err = Load(write(t, strings.Replace(minimal, "    models", "    circuit_breaker: {failures: 2}\n    models", 1)), nil)
	require.NoError(t, err)
	require.Equal(t, CircuitBreaker{Failures: 2, OpenFor: time.Minute}, cfg.Providers[0].CircuitBreaker)
}

func TestLoadKeepsExplicitZeros(t *testing.T) {
	t.Parallel()
	cfg, err := Load(write(t, strings.Replace(minimal, "    models", "    linger: 0s\n    circuit_breaker: {failures: 0}\n    models", 1)+"shutdown_timeout: 0s\n"), nil)
	require.NoError(t, err)
	require.Zero(t, cfg.ShutdownTimeout)
	require.Zero(t, cfg.Providers[0].Linger)
	require.Zero(t, cfg.Providers[0].CircuitBreaker.Failures)
}

func TestLoadKeepsPricesAsWritten(t *testing.T) {
	t.Parallel()
	text := strings.Replace(minimal, "{name: m}", "{name: m, price_per_million: {input: 0.10, output: 123456789.123456789012}}", 1)
	cfg, err := Load(write(t, text), nil)
	require.NoError(t, err)
	require.Equal(t, Prices{Input: "0.10", Output: "123456789.123456789012"}, cfg.Providers[0].Models[0].PricePerMillion)
}

func TestLoadReadsSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Bytes{"2MiB": 2 << 20, "512KiB": 512 << 10, "2MB": 2_000_000, "4194304": 4 << 20} {
		cfg, err := Load(write(t, "limits: {body: "+text+"}"), nil)
		require.NoError(t, err)
		require.Equal(t, want, cfg.Limits.Body)
		var back Bytes
		require.NoError(t, back.UnmarshalText([]byte(want.String())))
		require.Equal(t, want, back)
	}
}

func TestLoadRefusesWithPathAndLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"UnknownKey":        {"lease: 15s\nlisten_on: x\n", "docket.yaml:2: listen_on: unknown key"},
		"UnknownNestedKey":  {minimal + "limits:\n  boddy: 1\n", "docket.yaml:7: limits.boddy: unknown key"},
		"UnknownKeyInList":  {"providers:\n  - name: a\n    kin: demo\n", "docket.yaml:3: providers[0].kin: unknown key"},
		"UnknownKeyOfModel": {strings.Replace(minimal, "{name: m}", "{name: m, size: 3}", 1), "docket.yaml:5: providers[0].models[0].size: unknown key"},
		"KeyInFile":         {"providers:\n  - name: a\n    api_key: sk-1\n", "docket.yaml:3: providers[0].api_key: unknown key"},
		"DuplicateKey":      {"lease: 15s\nlease: 16s\n", "docket.yaml:2: "},
		"NotYAML":           {"lease: 15s\n  x: [\n", "docket.yaml:"},
		"SecondDocument":    {"lease: 15s\n---\nlease: 16s\n", "docket.yaml:3: holds more than one document"},
		"Anchor":            {"listen: &a 127.0.0.1:1\n", "docket.yaml:1: listen: anchors"},
		"Null":              {"lease:\n", "docket.yaml:1: lease: has no value"},
		"ListForMapping":    {"auth: [dev]\n", "docket.yaml:1: auth: must be a mapping"},
		"ScalarForList":     {"tasks: ./x\n", "docket.yaml:1: tasks: must be a list"},
		"MappingForScalar":  {"listen: {a: b}\n", "docket.yaml:1: listen: must be a single value"},
		"DurationNoUnit":    {"lease: 15\n", `docket.yaml:1: lease: "15" is not a duration`},
		"NegativeDuration":  {"lease: -15s\n", "docket.yaml:1: lease: must not be negative"},
		"Fraction":          {"limits: {depth: 1.5}\n", `docket.yaml:1: limits.depth: "1.5" is not a whole number`},
		"Bool":              {strings.Replace(minimal, "    models", "    idempotent: yes\n    models", 1), "docket.yaml:5: providers[0].idempotent: must be true or false"},
		"Size":              {"limits:\n  body: big\n", `docket.yaml:2: limits.body: "big" is not a size`},
		"Price":             {strings.Replace(minimal, "{name: m}", "{name: m, price_per_million: {input: 1e-7}}", 1), "docket.yaml:5: providers[0].models[0].price_per_million.input: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(write(t, c.text), nil)
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestLoadListsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := Load(write(t, "retention: {batch: 0}\nlease: 0s\nlimits: {depth: 0}\n"), nil)
	require.ErrorContains(t, err, "docket.yaml:1: retention.batch: 0 is not between 1 and 1000")
	require.ErrorContains(t, err, "docket.yaml:2: lease: 0s is not between 1s and 10m0s")
	require.ErrorContains(t, err, "docket.yaml:3: limits.depth: 0 is not between 1 and 1000")
}

func TestLoadErrorsHoldNoPassword(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	for _, text := range []string{
		"database: postgres://u:hunter2@h:port/db\n",
		"database: mysql://u:hunter2@h/db\n",
		"database: postgres://u:hunter2@h/db\nlease: 1\n",
		"database: postgres://u:hunter2@h/db\n  x: [\n",
		"database: postgres://u:hunter2@h/db\nlease: 1s\nlease: 2s\n",
		strings.Replace(minimal, "http://", "http://u:hunter2@", 1),
		strings.Replace(minimal, "    models", "    api_key_env: hunter2\n    models", 1),
	} {
		_, err := Load(write(t, text), nil)
		require.ErrorIs(t, err, ErrInvalid, text)
		require.NotContains(t, err.Error(), password)
	}
}

func TestLoadReadsAKeyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tc := range map[string]struct{ content, want string }{
		"key":   {" sk-from-a-file\n", "sk-from-a-file"},
		"empty": {"\n", ""},
		"huge":  {strings.Repeat("k", maxKeyFile+1), ""},
		"none":  {"", ""},
	} {
		path := filepath.Join(dir, name)
		if name != "none" {
			require.NoError(t, os.WriteFile(path, []byte(tc.content), 0o600))
		}
		cfg, err := Load(write(t, strings.Replace(minimal, "    models", "    api_key_file: "+path+"\n    models", 1)), nil)
		require.NoError(t, err, "commands that need no key work without it")
		require.Equal(t, tc.want, cfg.Providers[0].APIKey.Reveal(), name)
		if tc.want == "" {
			usable, missing := cfg.Usable()
			require.Equal(t, []Missing{{"local", "providers[0].api_key_file: the file cannot be read, is empty or larger than 64 KiB"}}, missing)
			require.Empty(t, usable.Providers)
			continue
		}
		_, missing := cfg.Usable()
		require.Empty(t, missing)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", cfg, cfg.Providers, cfg.Providers), "sk-from-a-file")
	}
}
