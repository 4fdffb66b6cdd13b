package providertest

import (
	"encoding/json"

	"github.com/docket-gateway/docket/providers/demo"
)

// Answer is the good answer of all fakes, by the demo's rules: the object that the system prompt dictates, if it does (demo.Dictated),
// else a document that keeps the schema, made from the user's prompt. The task's name may be empty.
func Answer(task, system, prompt string, schema json.RawMessage) string {
	if object, ok := demo.Dictated(system); ok {
		return string(object)
	}
	input, err := json.Marshal(map[string]string{"text": prompt})
	if err != nil {
		return "{}"
	}
	out, err := demo.Print(task, input, schema)
	if err != nil {
		return "{}"
	}
	return string(out)
}
