package contracts_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/providers/demo"
)

// wrongOutput is an answer that keeps the schema, and that one assertion of its case refuses.
type wrongOutput struct {
	RefusedBy string          `json:"refused_by"`
	Output    json.RawMessage `json:"output"`
}

// refusals are the assertions of the case that the output breaks, with what they say.
func refusals(t *testing.T, c contracts.Case, output []byte) (exprs, problems []string) {
	t.Helper()
	for _, a := range c.Assert {
		problem, err := a.Check(t.Context(), c.Input, output)
		require.NoError(t, err, a)
		if problem != "" {
			exprs, problems = append(exprs, a.String()), append(problems, problem)
		}
	}
	return exprs, problems
}

// TestShippedAssertionsEachRefuseSomething holds every shipped assertion against an answer that it alone refuses: an assertion that
// no valid answer can break says nothing.
func TestShippedAssertionsEachRefuseSomething(t *testing.T) {
	t.Parallel()
	suites, err := contracts.LoadSuites(contracts.ShippedTasks())
	require.NoError(t, err)
	var files []string
	for _, s := range suites {
		for _, c := range s.Cases {
			file := filepath.Join("testdata", "wrong", s.Task.Name, c.Name+".json")
			files = append(files, file)
			t.Run(s.Task.Name+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				raw, err := os.ReadFile(file)
				require.NoError(t, err)
				var list []wrongOutput
				dec := json.NewDecoder(bytes.NewReader(raw))
				dec.DisallowUnknownFields()
				require.NoError(t, dec.Decode(&list))
				refused := map[string]bool{}
				for _, wrong := range list {
					require.Empty(t, s.Task.OutputSchema.ValidateOutput(wrong.Output), wrong.RefusedBy)
					by, problems := refusals(t, c, wrong.Output)
					require.Equal(t, []string{wrong.RefusedBy}, by, "%s", problems)
					require.NotContains(t, problems[0], "cannot be evaluated", "%s is broken by the schema already", wrong.RefusedBy)
					refused[wrong.RefusedBy] = true
				}
				require.NotEmpty(t, c.Assert)
				for _, a := range c.Assert {
					require.True(t, refused[a.String()], "no wrong output in %s for %s", file, a)
				}
			})
		}
	}
	left, err := filepath.Glob(filepath.Join("testdata", "wrong", "*", "*"))
	require.NoError(t, err)
	require.ElementsMatch(t, files, left, "each is of a shipped case")
}

// TestTheDemoKeepsTheShippedAssertions since it is what a fresh machine falls back to.
func TestTheDemoKeepsTheShippedAssertions(t *testing.T) {
	t.Parallel()
	suites, err := contracts.LoadSuites(contracts.ShippedTasks())
	require.NoError(t, err)
	for _, s := range suites {
		for _, c := range s.Cases {
			output, err := demo.Print(s.Task.Name, c.Input, s.Task.OutputSchemaJSON)
			require.NoError(t, err)
			exprs, problems := refusals(t, c, output)
			require.Empty(t, exprs, "%s/%s: %s", s.Task.Name, c.Name, problems)
		}
	}
}
