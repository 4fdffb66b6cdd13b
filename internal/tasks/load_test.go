package tasks_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/tasks"
)

func TestLoad(t *testing.T) {
	t.Parallel()

	t.Run("ReadsEveryField", func(t *testing.T) {
		t.Parallel()
		d, err := tasks.Load(folder(map[string]string{tasks.FileTask: goodYAML + `
max_output_tokens: 77
retry: {max: 0, base: 1s, cap: 1m}
contract: {runs: 7, max_age: 24h, require_roundtrip: true, stability: 0.8, budget: {p50: 1s, p95: 3s, cost: 0.0020}}
`}), "greet")
		require.NoError(t, err)
		require.Equal(t, "greet", d.Name)
		require.Equal(t, "1.2", d.Version)
		require.InDelta(t, 0.1, d.Temperature, 0)
		require.Equal(t, 77, d.MaxOutputTokens)
		require.Equal(t, []string{"demo/laser", "openai/gpt-4o-mini"}, d.Route())
		require.True(t, d.RaceAllowed)
		require.Equal(t, 5*time.Second, d.HedgeAfter)
		require.Equal(t, tasks.RetryPolicy{Max: 0, Base: time.Second, Cap: time.Minute}, d.Retry)
		require.Equal(t, tasks.ContractPolicy{Runs: 7, MaxAge: 24 * time.Hour, RequireRoundtrip: true, Stability: 0.8,
			Budget: tasks.Budget{P50: time.Second, P95: 3 * time.Second, Cost: "0.0020"}}, d.Contract)
		require.Regexp(t, `^sha256:[0-9a-f]{64}$`, d.Digest)
		require.NotEmpty(t, d.OutputSchema.ValidateOutput([]byte(`{"greeting": "a", "more": 1}`)))
		require.NotEmpty(t, d.InputSchema.Validate([]byte(`{}`)))
	})

	t.Run("FillsDefaults", func(t *testing.T) {
		t.Parallel()
		d, err := tasks.Load(folder(map[string]string{tasks.FileTask: "name: greet\nversion: v1\ntarget: a/b\n"}), "greet")
		require.NoError(t, err)
		require.Zero(t, d.Temperature)
		require.Equal(t, 1024, d.MaxOutputTokens)
		require.Empty(t, d.Fallbacks)
		require.False(t, d.RaceAllowed)
		require.Zero(t, d.HedgeAfter)
		require.Equal(t, tasks.RetryPolicy{Max: 2, Base: 500 * time.Millisecond, Cap: 30 * time.Second}, d.Retry)
		require.Equal(t, tasks.ContractPolicy{Runs: 5, MaxAge: 168 * time.Hour, Stability: 1}, d.Contract)
	})

	t.Run("KeepsABoundOfTheInput", func(t *testing.T) {
		t.Parallel()
		plain, err := tasks.Load(folder(nil), "greet")
		require.NoError(t, err)
		require.Zero(t, plain.MaxInputBytes)
		require.NotContains(t, string(plain.Content), "max_input_bytes", "it would change the digests of earlier versions")
		d, err := tasks.Load(folder(map[string]string{tasks.FileTask: goodYAML + "max_input_bytes: 4096\n"}), "greet")
		require.NoError(t, err)
		require.Equal(t, 4096, d.MaxInputBytes)
		require.NotEqual(t, plain.Digest, d.Digest)
		again, err := tasks.Parse(d.Content)
		require.NoError(t, err)
		require.Equal(t, 4096, again.MaxInputBytes)
	})

	t.Run("TakesFormatsForHintsIfItIsToldSo", func(t *testing.T) {
		t.Parallel()
		const output = `{"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}`
		for formats, refused := range map[string]bool{"": true, "formats: assert\n": true, "formats: annotate\n": false} {
			d, err := tasks.Load(folder(map[string]string{tasks.FileTask: goodYAML + formats, tasks.FileOutputSchema: output}), "greet")
			require.NoError(t, err)
			require.Equal(t, refused, len(d.OutputSchema.ValidateOutput([]byte(`{"day": "tomorrow"}`))) > 0, formats)
			again, err := tasks.Parse(d.Stored)
			require.NoError(t, err)
			require.Equal(t, refused, len(again.OutputSchema.ValidateOutput([]byte(`{"day": "tomorrow"}`))) > 0, formats)
		}
	})

	t.Run("RefusesBadTaskFiles", func(t *testing.T) {
		t.Parallel()
		const base = "name: greet\nversion: v1\ntarget: a/b\n"
		for _, tc := range []struct{ name, yaml, want string }{
			{"unknown key", base + "temprature: 1\n", `[4:1] unknown field "temprature"`},
			{"unknown nested key", base + "retry:\n  maxi: 1\n", `[5:3] unknown field "maxi"`},
			{"repeated key", base + "name: greet\n", `already defined at [1:1]`},
			{"second document", base + "---\nname: x\n", "one YAML document"},
			{"empty", " ", "one YAML document"},
			{"only a comment", "# nothing\n", "one YAML document"},
			{"a list", "- a\n", "mapping is expected"},
			{"anchor", "name: &n greet\nversion: v1\ntarget: a/b\n", "[1:7] anchors and aliases"},
			{"merge key", base + "<<: {race: allowed}\n", "merge keys"},
			{"tag", "name: !!str greet\nversion: v1\ntarget: a/b\n", "[1:7] tags"},
			{"null", base + "retry: ~\n", "[4:8] a value is missing"},
			{"version is a number", "name: greet\nversion: 1.0\ntarget: a/b\n", "[2:10] a text is expected"},
			{"text is a truth value", base + "race: true\n", "[4:7] a text is expected"},
			{"fraction as integer", base + "max_output_tokens: 1.5\n", "[4:20] a whole number"},
			{"hex as integer", base + "max_output_tokens: 0x10\n", "a whole number"},
			{"integer in quotes", base + "retry: {max: '3'}\n", "a whole number"},
			{"temperature in quotes", base + "temperature: '0.1'\n", "[4:14] a decimal number"},
			{"temperature not a number", base + "temperature: .nan\n", "a decimal number"},
			{"duration without a unit", base + "contract: {max_age: 30}\n", "a duration such as"},
			{"flag is a text", base + "contract: {require_roundtrip: 'yes'}\n", "true or false"},
			{"no name", "version: v1\ntarget: a/b\n", "name: "},
			{"bad name", "name: Greet\nversion: v1\ntarget: a/b\n", "name: "},
			{"name of another folder", "name: hello\nversion: v1\ntarget: a/b\n", `is "hello", but the folder is called "greet"`},
			{"no version", "name: greet\ntarget: a/b\n", "version: "},
			{"no target", "name: greet\nversion: v1\n", "target: must be provider/model"},
			{"target without a model", "name: greet\nversion: v1\ntarget: a\n", "target: must be provider/model"},
			{"bad fallback", base + "fallbacks: [c]\n", "fallbacks[0]: must be provider/model"},
			{"fallback is the target", base + "fallbacks: [a/b]\n", "fallbacks[0]: is in the route twice"},
			{"fallback twice", base + "fallbacks: [c/d, c/d]\n", "fallbacks[1]: is in the route twice"},
			{"too hot", base + "temperature: 2.1\n", "temperature: must be between 0 and 2"},
			{"too cold", base + "temperature: -0.1\n", "temperature: must be between 0 and 2"},
			{"no tokens", base + "max_output_tokens: 0\n", "max_output_tokens: must be between"},
			{"unknown race", base + "race: maybe\n", "race: must be allowed or forbidden"},
			{"negative bound of the input", base + "max_input_bytes: -1\n", "max_input_bytes: must be between"},
			{"large bound of the input", base + "max_input_bytes: 67108865\n", "max_input_bytes: must be between"},
			{"unknown use of formats", base + "formats: maybe\n", "formats: must be assert or annotate"},
			{"hedge without race", base + "hedge_after: 1s\n", "hedge_after: needs race: allowed"},
			{"negative hedge", base + "race: allowed\nhedge_after: -1s\n", "hedge_after: must be between"},
			{"negative retries", base + "retry: {max: -1}\n", "retry.max: must be between"},
			{"base above cap", base + "retry: {base: 2s, cap: 1s}\n", "retry.base: must not be longer"},
			{"no runs", base + "contract: {runs: 0}\n", "contract.runs: must be between"},
			{"no stability", base + "contract: {stability: 0}\n", "contract.stability: must be above 0"},
			{"more than stable", base + "contract: {stability: 1.1}\n", "contract.stability: must be above 0 and at most 1"},
			{"negative latency", base + "contract: {budget: {p95: -1s}}\n", "contract.budget.p95: must be between"},
			{"cost with an exponent", base + "contract: {budget: {cost: 1e-3}}\n", "contract.budget.cost: must be a decimal"},
			{"unknown budget", base + "contract: {budget: {p99: 1s}}\n", `unknown field "p99"`},
			{"no age", base + "contract: {max_age: 0s}\n", "contract.max_age: must be between"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				_, err := tasks.Load(folder(map[string]string{tasks.FileTask: tc.yaml}), "greet")
				require.ErrorContains(t, err, "greet/task.yaml: ")
				require.ErrorContains(t, err, tc.want)
			})
		}
	})

	t.Run("RefusesBrokenFilesByName", func(t *testing.T) {
		t.Parallel()
		for _, tc := range []struct{ name, file, content, want string }{
			{"missing", tasks.FilePrompt, "", "the file is missing"},
			{"too large", tasks.FilePrompt, strings.Repeat("a", tasks.MaxFileBytes+1), "larger than"},
			{"not UTF-8", tasks.FileSystem, "a\xff", "UTF-8"},
			{"NUL byte", tasks.FileSystem, "a\x00", "NUL"},
			{"template syntax", tasks.FileSystem, "{{if}}", "missing value for if"},
			{"unknown function", tasks.FilePrompt, "{{shell .Input}}", `function "shell" not defined`},
			{"misspelt field", tasks.FilePrompt, "a\n{{json .Inptu.name}}", "prompt.tmpl:2:13: there is no .Inptu"},
			{"misspelt field of $", tasks.FilePrompt, "{{range .Input.l}}{{$.Shema}}{{end}}", "there is no .Shema"},
			{"misspelt field in a condition", tasks.FilePrompt, "{{if .A}}x{{end}}", "there is no .A"},
			{"misspelt field in an else", tasks.FilePrompt, "{{with .Input}}x{{else}}{{.B}}{{end}}", "there is no .B"},
			{"schema syntax", tasks.FileOutputSchema, `{"type": }`, "at byte"},
			{"repeated key in a schema", tasks.FileInputSchema, `{"type": "object", "type": "array"}`, "at byte"},
			{"schema that is none", tasks.FileOutputSchema, `{"type": "objekt"}`, "greet/output.schema.json"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				_, err := tasks.Load(folder(map[string]string{tc.file: tc.content}), "greet")
				require.ErrorContains(t, err, "greet/"+tc.file+": ")
				require.ErrorContains(t, err, tc.want)
				var file *tasks.Error
				require.ErrorAs(t, err, &file)
				require.Equal(t, "greet/"+tc.file, file.File)
			})
		}
	})

	t.Run("NamesEveryBrokenFileAtOnce", func(t *testing.T) {
		t.Parallel()
		_, err := tasks.Load(folder(map[string]string{tasks.FileSystem: "{{", tasks.FilePrompt: "{{"}), "greet")
		require.ErrorContains(t, err, "greet/system.tmpl")
		require.ErrorContains(t, err, "greet/prompt.tmpl")
	})
}

func TestLoadAll(t *testing.T) {
	t.Parallel()

	t.Run("RefusesFolderWithoutTaskFile", func(t *testing.T) {
		t.Parallel()
		fsys := folder(nil)
		fsys["other/task.yml"] = &fstest.MapFile{Data: []byte(goodYAML)}
		_, err := tasks.LoadAll(fsys)
		require.ErrorContains(t, err, "other/task.yaml: the file is missing")
		require.ErrorIs(t, err, fs.ErrNotExist)
	})

	t.Run("PassesOverFilesAndHiddenFolders", func(t *testing.T) {
		t.Parallel()
		fsys := folder(nil)
		fsys["README.md"] = &fstest.MapFile{}
		fsys[".git/config"] = &fstest.MapFile{}
		fsys["_drafts/x"] = &fstest.MapFile{}
		defs, err := tasks.LoadAll(fsys)
		require.NoError(t, err)
		require.Len(t, defs, 1)
	})
}
