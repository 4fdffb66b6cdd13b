package tasks_test

import (
	"testing/fstest"

	"github.com/docket-gateway/docket/internal/tasks"
)

const (
	goodYAML = `name: greet
version: "1.2"
target: demo/laser
fallbacks: [openai/gpt-4o-mini]
temperature: 0.10
race: allowed
hedge_after: 5s
`
	goodInput  = `{"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}`
	goodOutput = `{"type": "object", "additionalProperties": false, "required": ["greeting"], "properties": {"greeting": {"type": "string"}}}`
	goodSystem = "Answer by {{.Schema}}\n"
	goodPrompt = "Greet {{json .Input.name}}.\n"
)

// folder returns the file system of one good task, with some of its files replaced; an empty replacement removes one.
func folder(replace map[string]string) fstest.MapFS {
	files := map[string]string{
		tasks.FileTask: goodYAML, tasks.FileInputSchema: goodInput, tasks.FileOutputSchema: goodOutput,
		tasks.FileSystem: goodSystem, tasks.FilePrompt: goodPrompt, "cases/one.json": `{"input": {"name": "Ada"}}`,
	}
	fsys := fstest.MapFS{}
	for name, content := range files {
		if r, ok := replace[name]; ok {
			content = r
		}
		if content != "" {
			fsys["greet/"+name] = &fstest.MapFile{Data: []byte(content)}
		}
	}
	for name, content := range replace {
		if _, ok := files[name]; !ok {
			fsys["greet/"+name] = &fstest.MapFile{Data: []byte(content)}
		}
	}
	return fsys
}
