package contracts_test

import (
	"encoding/json"
	"maps"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/golden"
)

// good is an answer that keeps every check of the task below.
const good = `{"echo": "x", "kind": "plain", "price": 1.5, "note": "n", "inner": {"n": 1}}`

// folder is a task with two cases, and the changes on top; an empty change removes a file.
func folder(changes map[string]string) fstest.MapFS {
	files := map[string]string{
		"echo/task.yaml":         "name: echo\nversion: v1\ntarget: a/b\nfallbacks: [c/d]\ntemperature: 0.5\nmax_output_tokens: 9\ncontract: {runs: 1}\n",
		"echo/input.schema.json": `{"type": "object", "additionalProperties": false, "required": ["text"], "properties": {"text": {"type": "string"}}}`,
		"echo/output.schema.json": `{"type": "object", "required": ["echo", "kind"], "properties": {
			"echo": {"type": "string"}, "kind": {"type": "string", "enum": ["plain", "loud"]}, "price": {"type": "number"}, "note": {"type": "string"},
			"inner": {"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}}}}`,
		"echo/system.tmpl":    "Obey.",
		"echo/prompt.tmpl":    "Echo {{.Input.text}}",
		"echo/cases/one.json": `{"input": {"text": "eins"}, "assert": ["output.kind == 'plain'", "output.price <= 2"], "compare": {"/echo": "exact", "": "structure", "/inner/n": "tolerance:0.01"}}`,
		"echo/cases/two.json": `{"input": {"text": "zwei"}}`,
	}
	maps.Copy(files, changes)
	fsys := fstest.MapFS{}
	for name, content := range files {
		if content != "" {
			fsys[name] = &fstest.MapFile{Data: []byte(content)}
		}
	}
	return fsys
}

func load(t *testing.T, fsys fstest.MapFS) contracts.Suite {
	t.Helper()
	suites, err := contracts.LoadSuites(fsys)
	require.NoError(t, err)
	require.Len(t, suites, 1)
	return suites[0]
}

// suite has no goldens.
func suite(t *testing.T, changes map[string]string) contracts.Suite {
	t.Helper()
	return load(t, folder(changes))
}

// recorded is suite with the goldens of the good answer at a/b.
func recorded(t *testing.T, changes map[string]string) contracts.Suite {
	t.Helper()
	return load(t, recordedFiles(t, changes))
}

func recordedFiles(t *testing.T, changes ...map[string]string) fstest.MapFS {
	t.Helper()
	all := map[string]string{}
	for _, c := range changes {
		maps.Copy(all, c)
	}
	fsys := folder(all)
	s := load(t, fsys)
	nodes, err := golden.Structure([]byte(good))
	require.NoError(t, err)
	write := func(name string, v any) {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		fsys["echo/"+name] = &fstest.MapFile{Data: raw}
	}
	for _, c := range s.Cases {
		shared, own := contracts.SharedGolden{Structure: nodes, Values: map[string]json.RawMessage{}}, contracts.TargetGolden{Values: map[string]json.RawMessage{}}
		for pointer, mode := range c.Compare {
			value, _ := golden.At([]byte(good), pointer)
			switch mode.Kind {
			case golden.ModeExact:
				own.Values[pointer] = value
			case golden.ModeSubset, golden.ModeTolerance:
				shared.Values[pointer] = value
			case golden.ModeStructure:
			}
		}
		write(contracts.SharedGoldenFile(c.Name), shared)
		write(contracts.TargetGoldenFile(c.Name, "a/b"), own)
		if prompt, err := s.Task.Render(c.Input); err == nil {
			fsys["echo/"+contracts.PromptGoldenFile(c.Name, "a/b")] = &fstest.MapFile{Data: []byte(contracts.RenderedPrompt(prompt))}
		}
	}
	return fsys
}

func with(t *testing.T, fsys fstest.MapFS, changes map[string]string) fstest.MapFS {
	t.Helper()
	for name, content := range changes {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}
