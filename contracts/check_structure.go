package contracts

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/docket-gateway/docket/contracts/golden"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/tasks"
)

// CodeGoldenMissing is the code of a check that has nothing to compare with. Goldens are written on purpose only.
const CodeGoldenMissing = "GOLDEN_MISSING"

// checkStability compares the structure of every run with the golden's. A run without a valid answer does not have it.
func checkStability(task *tasks.Definition, in *CaseEvidence, runs []report.Run) report.Check {
	shared := in.Case.Goldens.Shared
	if shared == nil {
		c := failed(report.CheckStructure, "stability", CodeGoldenMissing, []report.Problem{{
			Pointer: "the structure", Expected: "a golden, which docket contracts run --update writes from the task's primary", Got: "no file " + SharedGoldenFile(in.Case.Name),
		}})
		return c
	}
	same, judged := 0, 0
	var problems []report.Problem
	for i, a := range in.Runs {
		if !keptSchema(runs[i]) {
			continue
		}
		judged++
		got, err := golden.Structure(a.Outcome.Output)
		if err != nil {
			problems = append(problems, report.Problem{Expected: "JSON", Got: err.Error()})
			continue
		}
		missing, extra := golden.Diff(in.Case.without(shared.Structure), in.Case.without(got))
		if len(missing)+len(extra) == 0 {
			same++
			continue
		}
		problems = append(problems, structureProblems(i+1, missing, extra)...)
	}
	if judged == 0 {
		return notRun("no answer kept the schema", report.CheckStructure+"/stability")[0]
	}
	n := len(in.Runs)
	message := fmt.Sprintf("%d of %d runs have the golden's structure, a ratio of %.2f; the task asks for %.2f", same, n, float64(same)/float64(n), task.Contract.Stability)
	if same >= enough(task, n) {
		c := passed(report.CheckStructure, "stability")
		c.Message = message
		return c
	}
	c := failed(report.CheckStructure, "stability", "", problems)
	if len(problems) == 0 { // the runs that are missing have failed for another reason
		c.Message = "the others kept no schema"
	}
	c.Message = message + ": " + c.Message
	return c
}

// without leaves out what the case compares in a way that allows other places.
func (c Case) without(nodes []golden.Node) []golden.Node {
	free := c.pointers(golden.ModeSubset)
	if len(free) == 0 {
		return nodes
	}
	var out []golden.Node
	for _, n := range nodes {
		inside := false
		for _, p := range free {
			inside = inside || n.Pointer == p || strings.HasPrefix(n.Pointer, p+"/")
		}
		if !inside {
			out = append(out, n)
		}
	}
	return out
}

// structureProblems tells another type at the same place as one thing.
// A run of 0 is none that is to be named.
func structureProblems(run int, missing, extra []golden.Node) []report.Problem {
	in := ""
	if run > 0 {
		in = fmt.Sprintf(" in run %d", run)
	}
	var out []report.Problem
	types := map[string][]string{}
	for _, n := range extra {
		types[n.Pointer] = append(types[n.Pointer], n.Type)
	}
	for _, n := range missing {
		got := "nothing"
		if t := types[n.Pointer]; t != nil {
			got = strings.Join(t, ", ")
			delete(types, n.Pointer)
		}
		out = append(out, report.Problem{Pointer: n.Pointer, Expected: n.Type, Got: got + in})
	}
	for _, n := range extra {
		if types[n.Pointer] != nil {
			out = append(out, report.Problem{Pointer: n.Pointer, Expected: "nothing", Got: n.Type + in})
		}
	}
	return out
}

func keptSchema(run report.Run) bool {
	for _, c := range run.Checks {
		if c.Name == report.CheckSchema {
			return c.Status == report.Passed
		}
	}
	return false
}

// checkValues compares the values that the case names with the goldens: those by exact with the target's own, the others with
// the shared ones.
func checkValues(target string, one Case, output []byte) report.Check {
	pointers := one.pointers(golden.ModeExact, golden.ModeSubset, golden.ModeTolerance)
	if len(pointers) == 0 {
		return report.Check{Name: report.CheckStructure, Aspect: "values", Status: report.NotApplicable, Message: "the case compares no values"}
	}
	var problems []report.Problem
	code := ""
	for _, p := range pointers {
		mode, file := one.Compare[p], SharedGoldenFile(one.Name)
		values := one.Goldens.sharedValues()
		if mode.Kind == golden.ModeExact {
			file, values = TargetGoldenFile(one.Name, target), one.Goldens.targetValues(target)
		}
		want, ok := values[p]
		if !ok {
			code = CodeGoldenMissing
			problems = append(problems, report.Problem{Pointer: p, Expected: "a golden value", Got: "none in " + file})
			continue
		}
		for _, d := range golden.Compare(mode, p, want, output) {
			problems = append(problems, report.Problem{Pointer: d.Pointer, Expected: d.Expected, Got: d.Got})
		}
	}
	if len(problems) > 0 {
		return failed(report.CheckStructure, "values", code, problems)
	}
	return passed(report.CheckStructure, "values")
}

func (g Goldens) sharedValues() map[string]json.RawMessage {
	if g.Shared == nil {
		return nil
	}
	return g.Shared.Values
}

func (g Goldens) targetValues(target string) map[string]json.RawMessage {
	if t := g.Targets[target]; t != nil {
		return t.Values
	}
	return nil
}
