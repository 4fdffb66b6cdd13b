package openai_test

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
)

var update = flag.Bool("update", false, "write the golden request bodies anew")

// The exact bodies that are sent for the shipped tasks. Review them like code: go test ./providers/openai -update
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	suites, err := contracts.LoadSuites(contracts.ShippedTasks())
	require.NoError(t, err)
	for name, change := range map[string]func(*providers.Config){
		"responses":            func(*providers.Config) {},
		"responses-background": func(c *providers.Config) { c.Background = true },
		"responses-reasoning":  func(c *providers.Config) { c.Models[0].Reasoning = true },
		"responses-not-strict": func(c *providers.Config) { c.StrictSchema = false },
		"chat":                 func(*providers.Config) {},
		"chat-reasoning":       func(c *providers.Config) { c.Models[0].Reasoning = true },
	} {
		for _, suite := range suites {
			task := suite.Task
			t.Run(name+"/"+task.Name, func(t *testing.T) {
				t.Parallel()
				prompt, err := task.Render(suite.Cases[0].Input)
				require.NoError(t, err)
				a := responsesAdapter()
				if strings.HasPrefix(name, "chat") {
					a = chatAdapter()
				}
				conformance.Bubble(t, a, change, func(t *testing.T, b *conformance.Bundle) {
					out := b.Sender.Send(t.Context(), providers.Request{
						AttemptID: "att_1", Task: task.Name, Model: conformance.Model, System: prompt.System, Prompt: prompt.User,
						Input: suite.Cases[0].Input, Schema: task.OutputSchemaJSON, Temperature: task.Temperature, MaxOutputTokens: task.MaxOutputTokens,
					}, b.Recorder)
					require.Equal(t, providers.Completed, out.Kind, "the fake takes it: %+v", out.Failure)
					e := b.Server.Log()[0]
					require.Equal(t, http.MethodPost, e.Method)
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
