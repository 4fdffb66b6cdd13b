package tasks_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/tasks"
)

func digest(t *testing.T, replace map[string]string) string {
	t.Helper()
	d, err := tasks.Load(folder(replace), "greet")
	require.NoError(t, err)
	return d.Digest
}

func TestDigest(t *testing.T) {
	t.Parallel()

	t.Run("IgnoresFormAndWhatIsNotPartOfTheVersion", func(t *testing.T) {
		t.Parallel()
		want := digest(t, nil)
		for name, replace := range map[string]map[string]string{
			"yaml order, comments, quotes": {tasks.FileTask: `# a comment
hedge_after: 5000ms
race: "allowed"
temperature: 1e-1
fallbacks:
  - openai/gpt-4o-mini
target: 'demo/laser'   # another
version: '1.2'
name: greet
retry: {cap: 30s}
`},
			"schema order and space": {tasks.FileOutputSchema: `{"properties":{"greeting":{"type":"string"}},
				"required":["greeting"],"additionalProperties":false,"type":"object"}`},
			"cases":     {"cases/one.json": `{"input": {"name": "Bob"}}`},
			"goldens":   {"cases/one.golden.json": `[]`, "goldens/x": "y"},
			"a readme":  {"README.md": "hello"},
			"cassettes": {"cassettes/x.yaml": "a: b"},
		} {
			require.Equal(t, want, digest(t, replace), name)
		}
	})

	t.Run("ChangesWithEverythingElse", func(t *testing.T) {
		t.Parallel()
		seen := map[string]string{digest(t, nil): "the original"}
		for name, replace := range map[string]map[string]string{
			"a byte of the system prompt":    {tasks.FileSystem: goodSystem + "\n"},
			"a byte of the prompt":           {tasks.FilePrompt: "greet {{json .Input.name}}.\n"},
			"CRLF in the prompt":             {tasks.FilePrompt: "Greet {{json .Input.name}}.\r\n"},
			"the input schema":               {tasks.FileInputSchema: `{"type": "object"}`},
			"the output schema":              {tasks.FileOutputSchema: `{"type": "object"}`},
			"an enum's order":                {tasks.FileOutputSchema: `{"enum": ["a", "b"]}`},
			"an enum's other order":          {tasks.FileOutputSchema: `{"enum": ["b", "a"]}`},
			"a big number":                   {tasks.FileOutputSchema: `{"const": 9007199254740993}`},
			"its neighbour":                  {tasks.FileOutputSchema: `{"const": 9007199254740992}`},
			"temperature":                    {tasks.FileTask: goodYAML[:len(goodYAML)-len("race: allowed\nhedge_after: 5s\n")]},
			"temperature beyond a double":    {tasks.FileTask: "name: greet\nversion: \"1.2\"\ntarget: demo/laser\ntemperature: 0.1000000000000000055\n"},
			"temperature as a double has it": {tasks.FileTask: "name: greet\nversion: \"1.2\"\ntarget: demo/laser\ntemperature: 0.1\n"},
			"a contract threshold":           {tasks.FileTask: goodYAML + "contract: {runs: 2}\n"},
		} {
			d := digest(t, replace)
			require.NotContains(t, seen, d, name)
			seen[d] = name
		}
	})
}

func TestParse(t *testing.T) {
	t.Parallel()
	loaded, err := tasks.Load(folder(nil), "greet")
	require.NoError(t, err)

	t.Run("RebuildsTheDefinition", func(t *testing.T) {
		t.Parallel()
		parsed, err := tasks.Parse(loaded.Stored)
		require.NoError(t, err)
		require.Equal(t, loaded.Digest, parsed.Digest)
		require.Equal(t, loaded.Content, parsed.Content)
		require.Equal(t, loaded.Route(), parsed.Route())
		require.Equal(t, loaded.Retry, parsed.Retry)
		require.Equal(t, loaded.Contract, parsed.Contract)
		require.Equal(t, loaded.HedgeAfter, parsed.HedgeAfter)
		require.Equal(t, loaded.OutputSchemaJSON, parsed.OutputSchemaJSON)

		want, err := loaded.Render(json.RawMessage(`{"name": "Ada"}`))
		require.NoError(t, err)
		got, err := parsed.Render(json.RawMessage(`{"name": "Ada"}`))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})

	t.Run("ToleratesWhatADatabaseReformats", func(t *testing.T) {
		t.Parallel()
		var b bytes.Buffer
		require.NoError(t, json.Indent(&b, loaded.Content, "", "   "))
		parsed, err := tasks.Parse(b.Bytes())
		require.NoError(t, err)
		require.Equal(t, loaded.Digest, parsed.Digest)
	})

	t.Run("RefusesContentThatNoFolderGives", func(t *testing.T) {
		t.Parallel()
		for _, tc := range []struct{ name, old, new, want string }{
			{"unknown key", `"format":1`, `"format":1,"more":1`, `unknown field "more"`},
			{"unknown format", `"format":1`, `"format":2`, "format 2 is not known"},
			{"missing default", `"base":"500ms",`, ``, "retry.base: must be between"},
			{"broken rule", `"temperature":0.1`, `"temperature":3`, "temperature: must be between"},
			{"number as text", `"temperature":0.1`, `"temperature":"0.1"`, "a number is expected"},
			{"another duration", `"500ms"`, `"0.5s"`, "not one that a task folder gives"},
			{"null", `"version":"1.2"`, `"version":null`, "version: must be"},
			{"broken template", `Greet {{json`, `Greet {{jason`, `function "jason" not defined`},
			{"repeated key", `"format":1`, `"format":1,"format":1`, "task version: "},
			{"not JSON", `{`, ``, "task version: "},
		} {
			changed := bytes.Replace(loaded.Content, []byte(tc.old), []byte(tc.new), 1)
			require.NotEqual(t, loaded.Content, changed, tc.name)
			_, err := tasks.Parse(changed)
			require.ErrorContains(t, err, tc.want, tc.name)
		}
	})
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	d, err := tasks.Load(folder(nil), "greet")
	require.NoError(t, err)

	t.Run("RefusesTwoOfOneName", func(t *testing.T) {
		t.Parallel()
		_, err := tasks.NewCatalog(d, d)
		require.ErrorContains(t, err, `"greet" is defined twice`)
	})

	t.Run("FindsByName", func(t *testing.T) {
		t.Parallel()
		other := *d
		other.Name = "a"
		c, err := tasks.NewCatalog(d, &other)
		require.NoError(t, err)
		got, ok := c.Get("greet")
		require.True(t, ok)
		require.Same(t, d, got)
		_, ok = c.Get("nope")
		require.False(t, ok)
		require.Equal(t, []*tasks.Definition{&other, d}, c.All())
	})
}
