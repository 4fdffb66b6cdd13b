package app

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/logtest"
)

// program runs one command to its end.
func runs(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err logtest.Buffer
	code = run(t.Context(), args, environ, &out, &err)
	return code, out.String(), err.String()
}

func fresh(t *testing.T) []string {
	t.Helper()
	return []string{"DOCKET_DATABASE=sqlite://" + filepath.Join(t.TempDir(), "docket.db"), "DOCKET_LISTEN=127.0.0.1:0"}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	bad := write(t, t.TempDir(), "docket.yaml", "lisen: 127.0.0.1:1\n")
	keyless := write(t, t.TempDir(), "docket.yaml", `providers:
  - {name: local, kind: openai-compatible, base_url: "http://127.0.0.1:1/v1", api_key_env: DOCKET_TEST_NO_SUCH_KEY, models: [{name: m}]}
`)
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"Version":                   {[]string{"version"}, 0, "docket "},
		"Help":                      {[]string{"--help"}, 0, "exactly one winner"},
		"UnknownFlag":               {[]string{"serve", "--nope"}, 2, "unknown flag: --nope"},
		"UnknownCommand":            {[]string{"sevre"}, 2, `unknown command "sevre"`},
		"TooManyArguments":          {[]string{"version", "now"}, 2, `unknown command "now"`},
		"MigrateAlone":              {[]string{"migrate"}, 2, "say which: up, status"},
		"MisspeltMigrate":           {[]string{"migrate", "staus"}, 2, `unknown command "staus"`},
		"ContractsAlone":            {[]string{"contracts"}, 2, "say which: run, status"},
		"MalformedFlag":             {[]string{"contracts", "run", "--runs", "x"}, 2, "invalid argument"},
		"UnknownMode":               {[]string{"contracts", "run", "--mode", "x"}, 2, `the mode "x" is not known`},
		"UnknownFormat":             {[]string{"contracts", "run", "--format", "x"}, 2, `the format "x" is not known`},
		"UnknownTask":               {[]string{"contracts", "run", "--task", "x"}, 2, `there is no task "x"`},
		"AttemptsAlone":             {[]string{"attempts"}, 2, "say which: list, settle"},
		"AttemptsBeforeTheSchema":   {[]string{"attempts", "list"}, 2, "`docket migrate up`"},
		"SettleNothing":             {[]string{"attempts", "settle", "--provider", "demo", "--outcome", "failed"}, 2, "`docket migrate up`"},
		"UnknownTarget":             {[]string{"contracts", "run", "--target", "demo/nope"}, 2, "demo/nope"},
		"BadConfiguration":          {[]string{"serve", "--config", bad}, 2, "lisen: unknown key"},
		"BadConfigurationMigrating": {[]string{"migrate", "up", "--config", bad}, 2, "lisen: unknown key"},
		"BadConfigurationContracts": {[]string{"contracts", "status", "--config", bad}, 2, "lisen: unknown key"},
		"NoSuchFile":                {[]string{"serve", "--config", bad + ".none"}, 1, "no such file"},
		"NoSuchFileForContracts":    {[]string{"contracts", "run", "--config", bad + ".none"}, 2, "no such file"},
		"NoKeyToServe":              {[]string{"serve", "--config", keyless}, 1, "DOCKET_TEST_NO_SUCH_KEY is not set"},
		"NoKeyToRunContracts":       {[]string{"contracts", "run", "--config", keyless}, 2, "DOCKET_TEST_NO_SUCH_KEY is not set"},
		"StatusBeforeTheSchema":     {[]string{"contracts", "status"}, 2, "`docket migrate up`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runs(t, append(fresh(t), "K=x"), tc.args...)
			require.Contains(t, stdout+stderr, tc.says)
			require.Equal(t, tc.code, code)
		})
	}
	t.Run("NoDatabase", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		nowhere := []string{"DOCKET_DATABASE=sqlite://" + filepath.Join(file, "docket.db")}
		for code, args := range map[int][]string{1: {"migrate", "up"}, 2: {"migrate", "status"}} {
			got, _, stderr := runs(t, nowhere, args...)
			require.Equal(t, code, got)
			require.Contains(t, stderr, "open sqlite")
		}
	})
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	environ := fresh(t)
	code, stdout, _ := runs(t, environ, "migrate", "status")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "PENDING")
	require.NotContains(t, stdout, "applied")
	_, err := os.Stat(strings.TrimPrefix(environ[0], "DOCKET_DATABASE=sqlite://"))
	require.ErrorIs(t, err, fs.ErrNotExist, "who only looks leaves no database behind")

	for range 2 { // the second one finds nothing to do
		code, stdout, _ = runs(t, environ, "migrate", "up")
		require.Equal(t, 0, code)
		require.Equal(t, "the schema is up to date\n", stdout)
	}

	code, stdout, _ = runs(t, environ, "migrate", "status")
	require.Equal(t, 0, code)
	require.NotContains(t, stdout, "PENDING")
	require.Regexp(t, `(?m)^1 +queue: .* +applied$`, stdout)
}

func TestContracts(t *testing.T) {
	t.Parallel()
	environ := fresh(t)
	code, _, stderr := runs(t, environ, "migrate", "up")
	require.Equal(t, 0, code, stderr)

	code, stdout, _ := runs(t, environ, "contracts", "status")
	require.Equal(t, 1, code)
	require.Regexp(t, `(?m)^triage +1\.0\.0 +demo/laser +fallback +MISSING( +-){4}$`, stdout)

	report := filepath.Join(t.TempDir(), "report.json")
	code, stdout, stderr = runs(t, environ, "contracts", "run", "--task", "triage", "--target", "demo/laser", "--format", "json", "--output", report)
	require.Equal(t, 0, code, stderr)
	require.Empty(t, stdout)
	raw, err := os.ReadFile(report)
	require.NoError(t, err)
	require.True(t, json.Valid(raw))
	require.Contains(t, string(raw), `"demo/laser"`)

	code, stdout, _ = runs(t, environ, "contracts", "run", "--task", "triage", "--target", "demo/inkjet")
	require.Equal(t, 1, code, "the inkjet jams")
	require.Contains(t, stdout, "JAMMED")

	code, stdout, _ = runs(t, environ, "contracts", "status", "--task", "triage", "--target", "demo/laser", "--format", "json")
	require.Equal(t, 0, code)
	var doc struct {
		Status []struct {
			State   string
			Allowed bool
			Role    string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.Len(t, doc.Status, 1)
	require.Equal(t, "PASSED", doc.Status[0].State)
	require.True(t, doc.Status[0].Allowed)
	require.Equal(t, "fallback", doc.Status[0].Role)

	code, stdout, _ = runs(t, environ, "contracts", "status", "--task", "triage")
	require.Equal(t, 1, code)
	require.Regexp(t, `(?m)^triage .*demo/inkjet +primary +FAILED`, stdout)
}

// TestServesInAnEmptyFolder is the first command of somebody who has only just got the program.
func TestServesInAnEmptyFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, ended := &logtest.Buffer{}, make(chan int, 1)
	go func() { ended <- run(ctx, nil, []string{"DOCKET_LISTEN=127.0.0.1:0"}, io.Discard, log) }()
	ready := line(t, log, "docket is ready")
	addr := regexp.MustCompile(`url=http://([^/]+)/`).FindStringSubmatch(ready)
	require.NotNil(t, addr, ready)
	require.Contains(t, ready, "tasks=2 targets=3")
	require.FileExists(t, "docket.db")

	becomes(t, addr[1], job(t, addr[1], "first", ""), `"state":"SUCCEEDED","result":{`)
	cancel()
	require.Equal(t, 0, <-ended)
	require.Contains(t, log.String(), "stopping")
}
