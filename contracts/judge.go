package contracts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/docket-gateway/docket/contracts/golden"
	"github.com/docket-gateway/docket/contracts/report"
)

// Judge makes a result of evidence. It asks nobody. An error means that nothing can be said: an assertion that does not give
// true or false, or ErrInterrupted, since the ctx ended.
func Judge(ctx context.Context, ev *Evidence) (report.Result, error) {
	s := ev.Suite
	basis, err := s.Basis(ev.Endpoint)
	if err != nil {
		return report.Result{}, err
	}
	res := report.Result{
		Task: s.Task.Name, TaskLabel: s.Task.Version, Target: ev.Target, Mode: ev.Mode, Runs: ev.RunCount, RanBy: ev.RanBy,
		StartedAt: ev.StartedAt, FinishedAt: ev.FinishedAt,
		Basis: basis,
	}
	for i := range ev.Cases {
		c, err := judgeCase(ctx, ev, &ev.Cases[i])
		if ctx.Err() != nil {
			return report.Result{}, fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
		}
		if err != nil {
			return report.Result{}, fmt.Errorf("case %q: %w", ev.Cases[i].Case.Name, err)
		}
		res.Cases = append(res.Cases, c)
	}
	res.Checks = append(slices.Clone(ev.Faults), checkLatency(ev, &res))
	res.Cost = totalCost(ev)
	res.Judge()
	return res, nil
}

func judgeCase(ctx context.Context, ev *Evidence, in *CaseEvidence) (report.Case, error) {
	c := report.Case{Name: in.Case.Name, Checks: slices.Clone(in.PromptChecks)}
	if !in.Sendable {
		for n := range ev.RunCount {
			c.Runs = append(c.Runs, report.Run{Number: n + 1, Checks: notRun("nothing was sent, see the check prompt",
				report.CheckSchema, report.CheckSystem, report.CheckMeaning)})
		}
		c.Checks = append(c.Checks, notRun("nothing was sent, see the check prompt", report.CheckStructure, report.CheckSystem, report.CheckRoundTrip, report.CheckBudget)...)
		return c, nil
	}
	for n, a := range in.Runs {
		run, err := judgeRun(ctx, ev, in.Case, n+1, a)
		if err != nil {
			return report.Case{}, err
		}
		c.Runs = append(c.Runs, run)
	}
	c.Checks = append(c.Checks, checkStability(ev.Suite.Task, in, c.Runs), checkCanary(in), checkRoundTrip(ev.Suite.Task, in), checkCost(ev, &c))
	return c, nil
}

func judgeRun(ctx context.Context, ev *Evidence, one Case, number int, a Answer) (report.Run, error) {
	run := report.Run{Number: number, DurationMS: a.Duration.Milliseconds()}
	if u := a.Outcome.Usage; u != nil {
		run.InputTokens, run.OutputTokens = u.InputTokens, u.OutputTokens
		run.Cost, _ = ev.Endpoint.Target.Model.PricePerMillion.Cost(*u)
	}
	format := checkFormat(a)
	schema := checkSchema(ev.Suite.Task.OutputSchema, a, format)
	run.Checks = []report.Check{schema, format}
	if schema.Status != report.Passed {
		run.Checks = append(run.Checks, notRun("the answer did not keep the schema", report.CheckStructure+"/values", report.CheckMeaning)...)
		return run, nil
	}
	meaning, err := checkMeaning(ctx, one, a.Outcome.Output)
	if err != nil {
		return report.Run{}, fmt.Errorf("run %d: %w", number, err)
	}
	run.Checks = append(run.Checks, checkValues(ev.Target, one, a.Outcome.Output), meaning)
	return run, nil
}

// notRun names checks that could not be judged, with an aspect after a slash.
func notRun(why string, names ...string) []report.Check {
	out := make([]report.Check, len(names))
	for i, n := range names {
		name, aspect, _ := strings.Cut(n, "/")
		out[i] = report.Check{Name: name, Aspect: aspect, Status: report.NotRun, Message: why}
	}
	return out
}

// maxProblems keeps a report readable: a model may answer with any number of undeclared keys of any length.
const maxProblems = 20

// failed is a check with its problems, and a message that repeats them in one line.
func failed(name, aspect, code string, problems []report.Problem) (c report.Check) {
	c = report.Check{Name: name, Aspect: aspect, Status: report.Failed, Code: code, Problems: problems}
	var parts []string
	if more := len(problems) - maxProblems; more > 0 {
		c.Problems = problems[:maxProblems] //nolint:gosec // there are more
		defer func() { c.Message += fmt.Sprintf("; and %d more", more) }()
	}
	for i := range c.Problems {
		c.Problems[i].Pointer = golden.Line(c.Problems[i].Pointer)
		parts = append(parts, c.Problems[i].String())
	}
	c.Message = strings.Join(parts, "; ")
	return c
}

func passed(name, aspect string) report.Check {
	return report.Check{Name: name, Aspect: aspect, Status: report.Passed}
}
