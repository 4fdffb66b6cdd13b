package conformance

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/providertest"
)

var update = flag.Bool("update", false, "write the golden request bodies anew")

// Way is one way of configuring an adapter: its name in the golden files, and what it changes.
type Way struct {
	Name    string
	Adapter Adapter
	Change  func(*providers.Config) // may be nil
}

// RequestBodies compares what is sent for each shipped task, to the byte, with testdata/requests/<way>.<task>.json of the
// package under test; check looks at the rest of the request. A file is the body, indented: without white space outside of its
// strings it is what is sent, but for the end of a line that some SDKs write after it. Review the files like code, and write them with -update.
func RequestBodies(t *testing.T, ways []Way, check func(t *testing.T, e providertest.Entry)) {
	t.Helper()
	suites, err := contracts.LoadSuites(contracts.ShippedTasks())
	require.NoError(t, err)
	require.Len(t, suites, 2)
	for _, way := range ways {
		for _, suite := range suites {
			task := suite.Task
			t.Run(way.Name+"/"+task.Name, func(t *testing.T) {
				t.Parallel()
				prompt, err := task.Render(suite.Cases[0].Input)
				require.NoError(t, err)
				Bubble(t, way.Adapter, way.Change, func(t *testing.T, b *Bundle) {
					out := b.Sender.Send(t.Context(), providers.Request{
						AttemptID: "att_1", Task: task.Name, Model: Model, System: prompt.System, Prompt: prompt.User,
						Input: suite.Cases[0].Input, Schema: task.OutputSchemaJSON, Temperature: task.Temperature, MaxOutputTokens: task.MaxOutputTokens,
					}, b.Recorder)
					require.Equal(t, providers.Completed, out.Kind, "the fake takes it: %+v", out.Failure)
					e := b.Server.Log()[0]
					check(t, e)
					body := bytes.TrimSuffix(e.Body, []byte("\n"))
					path := filepath.Join("testdata", "requests", way.Name+"."+task.Name+".json")
					if *update {
						var b bytes.Buffer
						require.NoError(t, json.Indent(&b, body, "", "  "))
						b.WriteByte('\n')
						require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
						require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
					}
					raw, err := os.ReadFile(path)
					require.NoError(t, err, "write it with -update")
					var want bytes.Buffer
					require.NoError(t, json.Compact(&want, raw))
					require.Equal(t, want.String(), string(body))
				})
			})
		}
	}
}
