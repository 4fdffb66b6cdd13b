package contracts_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/internal/tasks"
)

func TestLoadSuites(t *testing.T) {
	t.Parallel()

	t.Run("KeepsEveryField", func(t *testing.T) {
		t.Parallel()
		s := suite(t, nil)
		require.Len(t, s.Cases, 2)
		require.Equal(t, "one", s.Cases[0].Name)
		require.JSONEq(t, `{"text": "eins"}`, string(s.Cases[0].Input))
		require.Equal(t, []string{"output.echo == input.text"}, s.Cases[0].Assert)
		require.Equal(t, map[string]string{"/echo": "exact", "": "structure", "/inner/n": "tolerance:0.01"}, s.Cases[0].Compare)
		require.Equal(t, "two", s.Cases[1].Name)
		require.Regexp(t, `^sha256:[0-9a-f]{64}$`, s.CasesDigest)
	})

	t.Run("RefusesBadCasesByFile", func(t *testing.T) {
		t.Parallel()
		for _, tc := range []struct{ name, content, want string }{
			{"unknown key", `{"input": {"text": "a"}, "asert": []}`, `unknown field "asert"`},
			{"repeated key", `{"input": {"text": "a"}, "input": {"text": "b"}}`, "at byte"},
			{"no input", `{"assert": ["true"]}`, "input: is missing"},
			{"input against the schema", `{"input": {"text": 1}}`, "/input/text"},
			{"undeclared key in the input", `{"input": {"text": "a", "more": 1}}`, "/input"},
			{"empty assertion", `{"input": {"text": "a"}, "assert": [" "]}`, "assert[0]: is empty"},
			{"assertion that is no text", `{"input": {"text": "a"}, "assert": [1]}`, "cannot unmarshal"},
			{"unknown comparison", `{"input": {"text": "a"}, "compare": {"/echo": "same"}}`, `compare["/echo"]: must be exact`},
			{"bad pointer", `{"input": {"text": "a"}, "compare": {"echo": "exact"}}`, `compare["echo"]: the key is not a JSON pointer`},
			{"bad tolerance", `{"input": {"text": "a"}, "compare": {"/echo": "tolerance:-1"}}`, "tolerance must be"},
			{"tolerance that is no number", `{"input": {"text": "a"}, "compare": {"/echo": "tolerance:NaN"}}`, "tolerance must be"},
			{"text after the case", `{"input": {"text": "a"}} {}`, "at byte"},
			{"not JSON", `input: a`, "at byte"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				_, err := contracts.LoadSuites(folder(map[string]string{"echo/cases/bad.json": tc.content}))
				require.ErrorContains(t, err, "echo/cases/bad.json: ")
				require.ErrorContains(t, err, tc.want)
			})
		}
	})

	t.Run("RefusesASuiteWithoutCases", func(t *testing.T) {
		t.Parallel()
		_, err := contracts.LoadSuites(folder(map[string]string{"echo/cases/one.json": "", "echo/cases/two.json": ""}))
		require.ErrorContains(t, err, "echo/cases: there is no case")
	})

	t.Run("FitsOtherVersionsOfTheTask", func(t *testing.T) {
		t.Parallel()
		s := suite(t, nil)
		older := suite(t, map[string]string{"echo/system.tmpl": "Older."}).Task
		got, err := s.For(older)
		require.NoError(t, err)
		require.Same(t, older, got.Task)
		require.Equal(t, s.Cases, got.Cases)
		require.Equal(t, s.CasesDigest, got.CasesDigest)

		other, err := tasks.Load(folder(map[string]string{"echo/input.schema.json": `{"required": ["words"]}`}), "echo")
		require.NoError(t, err)
		_, err = s.For(other)
		require.ErrorContains(t, err, `case "one" does not fit`)
	})

	t.Run("DigestFollowsTheCasesAndNothingElse", func(t *testing.T) {
		t.Parallel()
		want := suite(t, nil).CasesDigest
		for name, changes := range map[string]map[string]string{
			"form":                  {"echo/cases/two.json": "{\n \"input\" : {\"text\": \"zwei\"}, \"assert\": [], \"compare\": {}}"},
			"a golden beside":       {"echo/cases/two.golden.json": "[]"},
			"notes":                 {"echo/cases/README.md": "x"},
			"a byte of the prompts": {"echo/system.tmpl": "obey."},
		} {
			require.Equal(t, want, suite(t, changes).CasesDigest, name)
		}
		for name, changes := range map[string]map[string]string{
			"an input":     {"echo/cases/two.json": `{"input": {"text": "zwo"}}`},
			"an assertion": {"echo/cases/two.json": `{"input": {"text": "zwei"}, "assert": ["true"]}`},
			"a comparison": {"echo/cases/two.json": `{"input": {"text": "zwei"}, "compare": {"": "exact"}}`},
			"a new case":   {"echo/cases/three.json": `{"input": {"text": "drei"}}`},
			"a name":       {"echo/cases/two.json": "", "echo/cases/zwei.json": `{"input": {"text": "zwei"}}`},
		} {
			require.NotEqual(t, want, suite(t, changes).CasesDigest, name)
		}
	})
}

func TestShippedTasks(t *testing.T) {
	t.Parallel()
	suites, err := contracts.LoadSuites(contracts.ShippedTasks())
	require.NoError(t, err)
	require.Len(t, suites, 2)
	require.Equal(t, "invoice", suites[0].Task.Name)
	require.Equal(t, "triage", suites[1].Task.Name)
	for _, s := range suites {
		require.GreaterOrEqual(t, len(s.Cases), 4)
		require.Equal(t, []string{"demo/inkjet", "demo/laser"}, s.Task.Route())
		for _, c := range s.Cases {
			require.NotEmpty(t, c.Assert, c.Name)
			p, err := s.Task.Render(c.Input)
			require.NoError(t, err)
			require.Contains(t, p.System, string(s.Task.OutputSchemaJSON))
			require.NotEmpty(t, p.User)
		}
	}
	require.False(t, suites[0].Task.RaceAllowed)
	require.True(t, suites[1].Task.RaceAllowed)
}
