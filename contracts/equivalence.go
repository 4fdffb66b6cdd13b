package contracts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/shopspring/decimal"

	"github.com/docket-gateway/docket/contracts/golden"
	"github.com/docket-gateway/docket/contracts/report"
)

// Compare says where the target differs from the one that it is to stand in for, by what was collected at both and by what Judge
// said of it. It breaks the same operational contract if it does not pass a check that the other passes, or if its answers have
// another structure or another value at a pointer that a case compares by exact. Latency and cost are told, not judged: the check
// budget does that.
func Compare(against, target *Evidence, judgedAgainst, judged report.Result) (report.Comparison, error) {
	if against.Suite.Task.Digest != target.Suite.Task.Digest || len(against.Cases) != len(target.Cases) {
		return report.Comparison{}, fmt.Errorf("%s and %s were not asked the same", against.Target, target.Target)
	}
	out := report.Comparison{
		Task: target.Suite.Task.Name, Target: target.Target, Against: against.Target,
		Checks: report.CompareVerdicts(judgedAgainst, judged, ""), Cases: []report.CaseComparison{},
	}
	out.Same = !slices.ContainsFunc(out.Checks, breaks)
	for i := range target.Cases {
		c, err := compareCase(&against.Cases[i], &target.Cases[i], judgedAgainst, judged)
		if err != nil {
			return report.Comparison{}, err
		}
		out.Same = out.Same && c.Same
		out.Cases = append(out.Cases, c)
	}
	if a, t := judgedAgainst.Latency, judged.Latency; a != nil && t != nil {
		out.Latency = measure(strconv.FormatInt(a.P50MS, 10), strconv.FormatInt(t.P50MS, 10), unitMS)
	}
	if a, t := judgedAgainst.Cost, judged.Cost; a != nil && t != nil && a.Currency == t.Currency && a.Unpriced == 0 && t.Unpriced == 0 {
		out.Cost = measure(a.Amount, t.Amount, t.Currency)
	}
	return out, nil
}

func breaks(v report.Verdicts) bool { return v.Breaks }

func compareCase(against, target *CaseEvidence, judgedAgainst, judged report.Result) (report.CaseComparison, error) {
	name := target.Case.Name
	c := report.CaseComparison{Name: name, Checks: report.CompareVerdicts(judgedAgainst, judged, name)}
	a, ok := answers(against)
	t, ok2 := answers(target)
	switch {
	case !ok:
		c.Note = "no answer that is JSON came of " + judgedAgainst.Target + ", so there is nothing to compare with"
	case !ok2:
		c.Note = "no answer that is JSON came of " + judged.Target
	default:
		missing, extra := golden.Diff(a.structure, t.structure)
		c.Structure = differences(missing, extra)
		for _, pointer := range target.Case.pointers(golden.ModeExact) {
			c.Values = append(c.Values, exactDifferences(pointer, a.outputs, t.outputs)...)
		}
	}
	c.Latency, c.Cost = caseMeasures(name, judgedAgainst, judged)
	c.Same = len(c.Structure)+len(c.Values) == 0 && c.Note == "" && !slices.ContainsFunc(c.Checks, breaks)
	return c, nil
}

// answered is what a case's runs answered.
type answered struct {
	structure []golden.Node // the most frequent one
	outputs   [][]byte
}

// answers leaves out the runs that gave no JSON; ok is false if none is left.
func answers(in *CaseEvidence) (out answered, ok bool) {
	var readable []Answer
	for _, a := range in.Runs {
		if a.Completed() && outsideJSON(a.Outcome.Output) == "" {
			readable = append(readable, a)
			out.outputs = append(out.outputs, a.Outcome.Output)
		}
	}
	most, _, err := frequentStructure(&CaseEvidence{Case: in.Case, Runs: readable})
	out.structure = most.nodes
	return out, err == nil && len(readable) > 0
}

// differences tells another type at the same place as one thing.
func differences(missing, extra []golden.Node) []report.Problem {
	problems := structureProblems(0, missing, extra)
	if len(problems) > maxProblems {
		problems = problems[:maxProblems]
	}
	for i := range problems {
		problems[i].Pointer = golden.Line(problems[i].Pointer)
	}
	return problems
}

func exactDifferences(pointer string, against, target [][]byte) []report.Problem {
	want, _, ok := frequentValue(pointer, against)
	_, output, ok2 := frequentValue(pointer, target)
	switch {
	case !ok && !ok2:
		return nil
	case !ok:
		return []report.Problem{{Pointer: pointer, Expected: "nothing", Got: "a value"}}
	case !ok2:
		return []report.Problem{{Pointer: pointer, Expected: golden.Line(string(want)), Got: "nothing"}}
	}
	var out []report.Problem
	for _, d := range golden.Compare(golden.Mode{Kind: golden.ModeExact}, pointer, want, output) {
		out = append(out, report.Problem{Pointer: golden.Line(d.Pointer), Expected: d.Expected, Got: d.Got})
	}
	return out
}

// frequentValue is the most frequent value at the pointer, and the first output that has it.
func frequentValue(pointer string, outputs [][]byte) (value json.RawMessage, output []byte, ok bool) {
	best := 0
	for _, o := range outputs {
		v, found := golden.At(o, pointer)
		if !found {
			continue
		}
		count := 0
		for _, other := range outputs {
			if w, found := golden.At(other, pointer); found && bytes.Equal(v, w) {
				count++
			}
		}
		if count > best {
			best, value, output = count, v, o
		}
	}
	return value, output, best > 0
}

const unitMS = "ms"

// caseMeasures compares the median runs.
func caseMeasures(name string, against, target report.Result) (latency, cost *report.Measure) {
	a, t := medians(against, name), medians(target, name)
	if a.duration != "" && t.duration != "" {
		latency = measure(a.duration, t.duration, unitMS)
	}
	if a.cost != "" && t.cost != "" && against.Cost != nil && target.Cost != nil && against.Cost.Currency == target.Cost.Currency {
		cost = measure(a.cost, t.cost, target.Cost.Currency)
	}
	return latency, cost
}

type median struct{ duration, cost string }

func medians(r report.Result, name string) (m median) {
	var took []int64
	var costs []decimal.Decimal
	for _, c := range r.Cases {
		if c.Name != name {
			continue
		}
		for _, run := range c.Runs {
			if keptSchema(run) {
				took = append(took, run.DurationMS)
			}
			if d, err := decimal.NewFromString(run.Cost); err == nil {
				costs = append(costs, d)
			}
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		m.duration = strconv.FormatInt(took[(len(took)-1)/2], 10)
	}
	if len(costs) > 0 {
		slices.SortFunc(costs, decimal.Decimal.Cmp)
		m.cost = costs[(len(costs)-1)/2].String()
	}
	return m
}

func measure(against, target, unit string) *report.Measure {
	m := &report.Measure{Against: against, Target: target, Unit: unit}
	a, err := decimal.NewFromString(against)
	t, err2 := decimal.NewFromString(target)
	if err == nil && err2 == nil && a.IsPositive() {
		m.Ratio = t.DivRound(a, 2).StringFixed(2)
	}
	return m
}
