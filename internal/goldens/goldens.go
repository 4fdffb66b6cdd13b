// Package goldens writes the goldens of tests' own tasks, whose answers are known before anything runs: a gateway reads them when it
// starts.
package goldens

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/golden"
)

// Write writes goldens for every case of every task under dir: the structure of the output, and the prompt for each target. The cases
// must compare no values.
func Write(dir string, output []byte, targets ...string) error {
	suites, err := contracts.LoadSuites(os.DirFS(dir))
	if err != nil {
		return fmt.Errorf("load the tasks: %w", err)
	}
	structure, err := golden.Structure(output)
	if err != nil {
		return fmt.Errorf("the output: %w", err)
	}
	shared, err := json.Marshal(contracts.SharedGolden{Structure: structure})
	if err != nil {
		return fmt.Errorf("the golden: %w", err)
	}
	for _, s := range suites {
		for _, c := range s.Cases {
			prompt, err := s.Task.Render(c.Input)
			if err != nil {
				return fmt.Errorf("case %q: %w", c.Name, err)
			}
			files := map[string][]byte{contracts.SharedGoldenFile(c.Name): shared}
			for _, t := range targets {
				files[contracts.PromptGoldenFile(c.Name, t)] = []byte(contracts.RenderedPrompt(prompt))
			}
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(dir, s.Task.Name, filepath.FromSlash(name)), content, 0o600); err != nil {
					return fmt.Errorf("write a golden: %w", err)
				}
			}
		}
	}
	return nil
}
