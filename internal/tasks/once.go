package tasks

import (
	"encoding/json"
	"fmt"
)

// Once returns the definition as that of a single attempt: the target is the primary and there is no fallback, no retry and no
// race. What is asked and what must come out stay the same. It is a version of its own.
func (d *Definition) Once(target string) (*Definition, error) {
	var doc document
	if err := json.Unmarshal(d.Stored, &doc); err != nil {
		return nil, fmt.Errorf("task %s: %w", d.Name, err) // not reachable: it is what compile wrote
	}
	f := doc.Task
	f.Target, f.Fallbacks = text(target), []text{}
	f.Race, f.HedgeAfter = raceForbidden, 0
	f.Retry.Max = 0
	s := sources{file: f, inputSchema: doc.InputSchema, outputSchema: doc.OutputSchema, system: doc.System, prompt: doc.Prompt}
	once, err := s.compile("")
	if err != nil {
		return nil, fmt.Errorf("task %s at %s alone: %w", d.Name, target, err)
	}
	return once, nil
}
