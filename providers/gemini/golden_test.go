package gemini_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
)

var update = flag.Bool("update", false, "write the golden request bodies anew")

// The exact bodies that are sent for the shipped tasks. Review them like code: go test ./providers/gemini -update
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	suites, err := contracts.LoadSuites(contracts.ShippedTasks())
	require.NoError(t, err)
	require.Len(t, suites, 2)
	for name, change := range map[string]func(*providers.Config){
		"generate":           nil,
		"generate-reasoning": func(c *providers.Config) { c.Models[0].Reasoning = true },
	} {
		for _, suite := range suites {
			task := suite.Task
			t.Run(name+"/"+task.Name, func(t *testing.T) {
				t.Parallel()
				prompt, err := task.Render(suite.Cases[0].Input)
				require.NoError(t, err)
				conformance.Bubble(t, adapter(), change, func(t *testing.T, b *conformance.Bundle) {
					out := b.Sender.Send(t.Context(), providers.Request{
						AttemptID: "att_1", Task: task.Name, Model: conformance.Model, System: prompt.System, Prompt: prompt.User,
						Input: suite.Cases[0].Input, Schema: task.OutputSchemaJSON, Temperature: task.Temperature, MaxOutputTokens: task.MaxOutputTokens,
					}, b.Recorder)
					require.Equal(t, providers.Completed, out.Kind, "the fake takes it: %+v", out.Failure)
					e := b.Server.Log()[0]
					require.Equal(t, http.MethodPost+" /v1/models/"+conformance.Model+":streamGenerateContent", e.Method+" "+e.Path)
					path := filepath.Join("testdata", "requests", name+"."+task.Name+".json")
					if *update {
						require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
						require.NoError(t, os.WriteFile(path, e.Body, 0o600))
					}
					want, err := os.ReadFile(path)
					require.NoError(t, err, "write it with -update")
					require.Equal(t, string(want), string(e.Body))
				})
			})
		}
	}
}
