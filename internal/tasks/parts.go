package tasks

import (
	"encoding/json"
	"maps"
)

// Parts are what the version's digest is made of, as JSON by name: the folder's files by theirs, and the keys of task.yaml with
// those that stand under others after a dot, as in contract.max_age.
func (d *Definition) Parts() map[string]json.RawMessage {
	var doc struct {
		Task         map[string]json.RawMessage `json:"task"`
		InputSchema  json.RawMessage            `json:"input_schema"`
		OutputSchema json.RawMessage            `json:"output_schema"`
		System       json.RawMessage            `json:"system"`
		Prompt       json.RawMessage            `json:"prompt"`
	}
	out := map[string]json.RawMessage{}
	if json.Unmarshal(d.Content, &doc) != nil {
		return out // not reachable but in tests: content is what document gives
	}
	flatten(doc.Task, "", out)
	maps.Copy(out, map[string]json.RawMessage{
		FileInputSchema: doc.InputSchema, FileOutputSchema: doc.OutputSchema, FileSystem: doc.System, FilePrompt: doc.Prompt,
	})
	return out
}

func flatten(object map[string]json.RawMessage, prefix string, out map[string]json.RawMessage) {
	for key, value := range object {
		var inner map[string]json.RawMessage
		if json.Unmarshal(value, &inner) == nil && inner != nil {
			flatten(inner, prefix+key+".", out)
			continue
		}
		out[prefix+key] = value
	}
}
