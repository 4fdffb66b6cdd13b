package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/docket-gateway/docket/contracts/report"
)

// evil is what a model may answer: markup, a script, control characters, line breaks.
const evil = "</pre><script>alert(1)</script>\" onload='x' {{.}} ]]>\x00\x1b[31m\nsecond line"

// sample has everything that a report can have.
func sample() ([]report.Result, []report.Comparison) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	tokens := 12
	good := complete()
	good.Basis = report.Basis{TaskVersion: digest, CasesDigest: digest, ConfigDigest: digest, ChecksVersion: "2"}
	good.StartedAt = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	good.FinishedAt = good.StartedAt.Add(3 * time.Second)
	good.Latency = &report.Latency{P50MS: 1500, P95MS: 1600, MaxMS: 1700}
	good.Cost = &report.Cost{Amount: "0.0123", Currency: "USD", Unpriced: 2}
	good.Cases[0].Runs[0].InputTokens, good.Cases[0].Runs[0].Cost = &tokens, "0.001"
	good.Cases[0].Checks[1] = report.Check{Name: report.CheckPrompt, Aspect: "controls", Status: report.NotApplicable, Message: "the provider counts tokens"}
	good.Judge()

	bad := good
	bad.Target = "c/d"
	bad.Cases = []report.Case{{Name: "one & <two>", Runs: []report.Run{{Number: 1, Checks: []report.Check{
		{Name: report.CheckSchema, Status: report.Failed, Code: "OUTPUT_INVALID", Message: "/a: expected: a <string>; came: " + evil,
			Problems: []report.Problem{{Pointer: "/a", Expected: "a <string>", Got: evil}}},
		{Name: report.CheckMeaning, Status: report.NotRun, Message: "the answer did not keep the schema"},
	}}}}}
	bad.Judge()

	return []report.Result{good, bad}, []report.Comparison{{
		Task: "triage", Target: "c/d", Against: "a/b", Checks: report.CompareVerdicts(good, bad, ""),
		Latency: &report.Measure{Against: "1500", Target: "3000", Unit: "ms", Ratio: "2.00"},
		Cases: []report.CaseComparison{
			{Name: "one & <two>", Checks: []report.Verdicts{{Check: "schema", Against: report.Passed, Target: report.Failed, Breaks: true}},
				Structure: []report.Problem{{Pointer: "/a", Expected: "string", Got: "number"}},
				Values:    []report.Problem{{Pointer: "/b", Expected: `"x"`, Got: evil}}},
			{Name: "two", Same: true, Cost: &report.Measure{Against: "0", Target: "1", Unit: "USD"}},
		},
	}}
}

func write(t *testing.T, f report.Format) string {
	t.Helper()
	results, comparisons := sample()
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, f, results, comparisons...))
	return b.String()
}

func TestWriteRefusesUnknownFormats(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.ErrorContains(t, report.Write(&b, "pdf", nil), `"pdf" is not known`)
	require.Empty(t, b.String())
}

func TestTable(t *testing.T) {
	t.Parallel()
	results, comparisons := sample()
	p := &results[1].Cases[0].Runs[0].Checks[0]
	p.Message, p.Problems[0].Got, comparisons[0].Cases[0].Values[0].Got = "/a: expected: a <string>; came: a number", "a number", `"y"`
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, report.Table, results, comparisons...))
	require.Equal(t, `TASK    VERSION  TARGET  MODE  CASES  RUNS  SCHEMA  STRUCTURE  PROMPT   SYSTEM   MEANING  ROUND_TRIP  FAULTS  BUDGET   RESULT
triage  1.0.0    a/b     live  1      1     ok      ok         n/a      ok       ok       ok          ok      ok       PASSED
triage  1.0.0    c/d     live  1      1     FAILED  not run    not run  not run  not run  not run     ok      not run  FAILED

triage at c/d:
  case "one & <two>", run 1, check schema: OUTPUT_INVALID
    /a
      - a <string>
      + a number
  1 check was not run

triage: c/d against a/b: BREAKS the operational contract
  latency p50 3000 ms against 1500 ms (2.00×), cost not known
  case "one & <two>": DIFFERS, latency not known, cost not known
    check schema: FAILED against PASSED
    /a
      - string
      + number
    /b
      - "x"
      + "y"
  case "two": same, latency not known, cost 1 USD against 0 USD
`, b.String())
}

// publishedSchema is what readers of the JSON report rely on.
func publishedSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	raw, err := os.ReadFile("../../docs/contract-report.schema.json")
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.Draft, c.AssertFormat = jsonschema.Draft2020, true
	require.NoError(t, c.AddResource("schema.json", bytes.NewReader(raw)))
	s, err := c.Compile("schema.json")
	require.NoError(t, err)
	return s
}

func TestJSONKeepsItsPublishedSchema(t *testing.T) {
	t.Parallel()
	s := publishedSchema(t)
	read := func(t *testing.T) map[string]any {
		t.Helper()
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(write(t, report.JSON)), &v))
		return v
	}
	v := read(t)
	require.NoError(t, s.Validate(v))
	require.Equal(t, false, v["passed"])

	// Each would fool a reader.
	first := func(v map[string]any) map[string]any { return v["results"].([]any)[0].(map[string]any) }
	for name, spoil := range map[string]func(map[string]any){
		"an undeclared field":     func(v map[string]any) { first(v)["surprise"] = 1 },
		"no verdict":              func(v map[string]any) { delete(first(v), "passed") },
		"another format":          func(v map[string]any) { v["format"] = 2 },
		"a status of nobody":      func(v map[string]any) { first(v)["checks"].([]any)[0].(map[string]any)["status"] = "MAYBE" },
		"a cost that is a number": func(v map[string]any) { first(v)["cost"].(map[string]any)["amount"] = 0.1 },
		"a digest cut short":      func(v map[string]any) { first(v)["digest"] = "sha256:00" },
		"no time":                 func(v map[string]any) { first(v)["started_at"] = "yesterday" },
	} {
		v := read(t)
		spoil(v)
		require.Error(t, s.Validate(v), name)
	}

	var b bytes.Buffer
	require.NoError(t, report.Write(&b, report.JSON, nil))
	require.JSONEq(t, `{"format": 1, "passed": false, "results": []}`, b.String(), "an empty report is no pass")
}

// junitShape is the usual schema of JUnit reports (Jenkins' junit-10.xsd): for each element its attributes, those that it must have
// marked, and the elements in it.
var junitShape = map[string]struct {
	attributes map[string]bool
	children   []string
}{
	"testsuites": {map[string]bool{"name": false, "time": false, "tests": false, "failures": false, "disabled": false, "errors": false}, []string{"testsuite"}},
	"testsuite": {map[string]bool{"name": true, "tests": true, "failures": false, "errors": false, "time": false, "disabled": false, "skipped": false,
		"timestamp": false, "hostname": false, "id": false, "package": false}, []string{"properties", "testcase", "system-out", "system-err"}},
	"testcase": {map[string]bool{"name": true, "classname": true, "time": false, "assertions": false, "status": false}, []string{"skipped", "error", "failure", "system-out", "system-err"}},
	"skipped":  {map[string]bool{"message": false}, nil},
	"failure":  {map[string]bool{"message": false, "type": false}, nil},
}

func TestJUnitHasTheUsualShape(t *testing.T) {
	t.Parallel()
	text := write(t, report.JUnit)
	dec := xml.NewDecoder(strings.NewReader(text))
	var stack []string
	names := map[string]bool{}
	counted := map[string]int{}
	told := map[string]int{}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			shape, known := junitShape[e.Name.Local]
			require.True(t, known, e.Name.Local)
			if len(stack) > 0 {
				require.Contains(t, junitShape[stack[len(stack)-1]].children, e.Name.Local)
			}
			has := map[string]string{}
			for _, a := range e.Attr {
				require.Contains(t, shape.attributes, a.Name.Local)
				has[a.Name.Local] = a.Value
			}
			for name, must := range shape.attributes {
				require.True(t, !must || has[name] != "", "%s needs %s", e.Name.Local, name)
			}
			counted[e.Name.Local]++
			switch e.Name.Local {
			case "testcase":
				id := has["classname"] + " " + has["name"]
				require.False(t, names[id], "two cases are called %s", id)
				names[id] = true
			case "testsuite":
				for _, name := range []string{"tests", "failures", "skipped"} {
					n, err := strconv.Atoi(has[name])
					require.NoError(t, err)
					told[name] += n
				}
			}
			stack = append(stack, e.Name.Local)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		}
	}
	require.Equal(t, map[string]int{"tests": counted["testcase"], "failures": counted["failure"], "skipped": counted["skipped"]}, told)
	require.Equal(t, 2, counted["failure"], "the schema, the case that differs, and nothing that was not run")
	require.Equal(t, 2, counted["skipped"])
	require.NotContains(t, text, "<script>")
}

// TestPageNeedsNothingElseAndEscapesEverything walks over the page's elements.
func TestPageNeedsNothingElseAndEscapesEverything(t *testing.T) {
	t.Parallel()
	text := write(t, report.HTML)
	root, err := html.Parse(strings.NewReader(text))
	require.NoError(t, err)
	words := ""
	elements := map[string]int{}
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			words += n.Data
			continue
		}
		elements[n.Data]++
		for _, a := range n.Attr {
			require.False(t, strings.HasPrefix(a.Key, "on"), "%s has %s", n.Data, a.Key)
			require.NotContains(t, []string{"src", "srcset", "style", "action", "data", "poster"}, a.Key)
			if a.Key == "href" {
				require.True(t, strings.HasPrefix(a.Val, "#"), a.Val)
			}
		}
	}
	for _, no := range []string{"script", "link", "img", "iframe", "object", "embed", "base", "form"} {
		require.Zero(t, elements[no], no)
	}
	require.NotContains(t, text, "@import")
	require.NotContains(t, text, "url(")
	require.NotContains(t, text, "ZgotmplZ", "the template refused a value")
	require.Contains(t, words, "<script>alert(1)</script>", "shown as it came")
	require.Contains(t, words, `one & <two>`)
	for _, name := range report.Checks() {
		require.Contains(t, words, name)
	}
	require.Equal(t, slices.Sorted(maps.Keys(map[string]bool{"a/b": true, "c/d": true})), slices.Compact(targetsOf(root)))
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, report.HTML, nil))
	require.Contains(t, b.String(), "Nothing was run, so nothing has passed.")
}

// targetsOf reads the second column of the first table.
func targetsOf(root *html.Node) (out []string) {
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "table" {
			continue
		}
		for row := range n.Descendants() {
			if row.Type == html.ElementNode && row.Data == "td" && row.PrevSibling != nil && row.PrevSibling.Data == "th" && row.FirstChild != nil {
				out = append(out, row.FirstChild.Data)
			}
		}
		return out
	}
	return nil
}
