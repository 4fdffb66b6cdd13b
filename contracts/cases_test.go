package contracts_test

import (
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/golden"
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
		require.Len(t, s.Cases[0].Assert, 2)
		require.Equal(t, "output.kind == 'plain'", s.Cases[0].Assert[0].String())
		require.Equal(t, map[string]golden.Mode{"/echo": {Kind: golden.ModeExact}, "": {Kind: golden.ModeStructure},
			"/inner/n": {Kind: golden.ModeTolerance, Tolerance: decimal.New(1, -2)}}, s.Cases[0].Compare)
		require.Equal(t, "two", s.Cases[1].Name)
		require.Empty(t, s.Cases[1].Assert)
		require.Regexp(t, `^sha256:[0-9a-f]{64}$`, digestOf(t, s, "a/b"))
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
			{"assertion that does not compile", `{"input": {"text": "a"}, "assert": ["true", "output.a =="]}`, "assert[1]: at line 1, column 12: Syntax error"},
			{"assertion with an unknown name", `{"input": {"text": "a"}, "assert": ["answer.a == 1"]}`, "assert[0]: at line 1, column 1: undeclared reference to 'answer'"},
			{"assertion that is no question", `{"input": {"text": "a"}, "assert": ["size(output.a)"]}`, "assert[0]: at line 1, column 1: the assertion does not give true or false"},
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
		require.Equal(t, digestOf(t, s, "a/b"), digestOf(t, got, "a/b"))

		other, err := tasks.Load(folder(map[string]string{"echo/input.schema.json": `{"required": ["words"]}`}), "echo")
		require.NoError(t, err)
		_, err = s.For(other)
		require.ErrorContains(t, err, `case "one" does not fit`)
	})

	t.Run("DigestFollowsTheCasesAndWhatIsRecordedAtTheTarget", func(t *testing.T) {
		t.Parallel()
		want := digestOf(t, recorded(t, nil), "a/b")
		for name, changes := range map[string]map[string]string{
			"form":                  {"echo/cases/two.json": "{\n \"input\" : {\"text\": \"zwei\"}, \"assert\": [], \"compare\": {}}"},
			"notes":                 {"echo/cases/README.md": "x"},
			"a golden of others":    {"echo/cases/two.c@d.golden.json": `{"values": {"/echo": 1}}`},
			"a prompt of others":    {"echo/cases/two.c@d.prompt.golden": "x"},
			"a byte of the prompts": {"echo/system.tmpl": "obey."},
		} {
			got := load(t, with(t, recordedFiles(t), changes))
			require.Equal(t, want, digestOf(t, got, "a/b"), name)
		}
		for name, changes := range map[string]map[string]string{
			"an input":          {"echo/cases/two.json": `{"input": {"text": "zwo"}}`},
			"an assertion":      {"echo/cases/two.json": `{"input": {"text": "zwei"}, "assert": ["true"]}`},
			"a comparison":      {"echo/cases/two.json": `{"input": {"text": "zwei"}, "compare": {"": "exact"}}`},
			"a new case":        {"echo/cases/three.json": `{"input": {"text": "drei"}}`},
			"the shared golden": {"echo/cases/two.golden.json": `{"structure": []}`},
			"a golden":          {"echo/cases/two.a@b.golden.json": `{"values": {"/echo": 1}}`},
			"a prompt's golden": {"echo/cases/two.a@b.prompt.golden": "x"},
		} {
			got := load(t, with(t, recordedFiles(t), changes))
			require.NotEqual(t, want, digestOf(t, got, "a/b"), name)
		}
	})

	t.Run("FindsGoldens", func(t *testing.T) {
		t.Parallel()
		s := suite(t, map[string]string{
			"echo/cases/one.golden.json":                  `{"structure": [{"pointer": "", "type": "object"}], "values": {"/inner/n": 2}}`,
			"echo/cases/one.a@vendor%2Fb.2.golden.json":   `{"values": {"/echo": "y"}}`,
			"echo/cases/one.a@vendor%2Fb.2.prompt.golden": "=== system",
			"echo/cases/one.more.json":                    `{"input": {"text": "a"}}`,
			"echo/cases/one.more.a@b.prompt.golden":       "longer",
			"echo/cases/one.more.golden.json":             `{"structure": []}`,
		})
		require.Equal(t, "one", s.Cases[0].Name)
		g := s.Cases[0].Goldens
		require.Equal(t, []golden.Node{{Type: "object"}}, g.Shared.Structure)
		require.JSONEq(t, "2", string(g.Shared.Values["/inner/n"]))
		require.Len(t, g.Targets, 1)
		require.JSONEq(t, `"y"`, string(g.Targets["a/vendor/b.2"].Values["/echo"]))
		require.Equal(t, "=== system", *g.Targets["a/vendor/b.2"].Prompt)
		require.Equal(t, "one.more", s.Cases[1].Name)
		require.Equal(t, "longer", *s.Cases[1].Goldens.Targets["a/b"].Prompt)
		require.NotNil(t, s.Cases[1].Goldens.Shared)
		require.Nil(t, s.Cases[2].Goldens.Shared)
	})

	t.Run("RefusesBadGoldensByFile", func(t *testing.T) {
		t.Parallel()
		for file, tc := range map[string]struct{ content, want string }{
			"three.golden.json":       {`{}`, "belongs to no case"},
			"one.a.golden.json":       {`{}`, "belongs to no case"},
			"one.prompt.golden":       {"x", "belongs to no case"},
			"three.a@b.prompt.golden": {"x", "belongs to no case"},
			"one.golden.json":         {`{"structur": []}`, "unknown field"},
			"two.golden.json":         {`{"structure": [], "structure": []}`, "The key is repeated in its object."},
			"two.a@b.golden.json":     {`[]`, "cannot unmarshal"},
		} {
			_, err := contracts.LoadSuites(folder(map[string]string{"echo/cases/" + file: tc.content}))
			require.ErrorContains(t, err, "echo/cases/"+file+": ")
			require.ErrorContains(t, err, tc.want, file)
		}
	})
}

func digestOf(t *testing.T, s contracts.Suite, target string) string {
	t.Helper()
	d, err := s.CasesDigest(target)
	require.NoError(t, err)
	return d
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
