package contracts_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
)

// folder is a task with two cases, and the changes on top; an empty change removes a file.
func folder(changes map[string]string) fstest.MapFS {
	files := map[string]string{
		"echo/task.yaml":          "name: echo\nversion: v1\ntarget: a/b\nfallbacks: [c/d]\ntemperature: 0.5\nmax_output_tokens: 9\n",
		"echo/input.schema.json":  `{"type": "object", "additionalProperties": false, "required": ["text"], "properties": {"text": {"type": "string"}}}`,
		"echo/output.schema.json": `{"type": "object", "required": ["echo"], "properties": {"echo": {"type": "string"}, "inner": {"type": "object", "properties": {"n": {"type": "number"}}}}}`,
		"echo/system.tmpl":        "Obey.",
		"echo/prompt.tmpl":        "Echo {{.Input.text}}",
		"echo/cases/one.json":     `{"input": {"text": "eins"}, "assert": ["output.echo == input.text"], "compare": {"/echo": "exact", "": "structure", "/inner/n": "tolerance:0.01"}}`,
		"echo/cases/two.json":     `{"input": {"text": "zwei"}}`,
	}
	fsys := fstest.MapFS{}
	for name, content := range changes {
		files[name] = content
	}
	for name, content := range files {
		if content != "" {
			fsys[name] = &fstest.MapFile{Data: []byte(content)}
		}
	}
	return fsys
}

func suite(t *testing.T, changes map[string]string) contracts.Suite {
	t.Helper()
	suites, err := contracts.LoadSuites(folder(changes))
	require.NoError(t, err)
	require.Len(t, suites, 1)
	return suites[0]
}
