package contracts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/docket-gateway/docket/contracts/golden"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/providers"
)

// Codes of the checks budget and round_trip.
const (
	CodeTooSlow      = "TOO_SLOW"
	CodeTooExpensive = "TOO_EXPENSIVE"
	CodeCostUnknown  = "COST_UNKNOWN" // the task bounds a cost that the target does not tell
	CodeNotTheSame   = "NOT_THE_SAME" // what was read back is not what was answered
)

// checkLatency judges percentiles over all answers, by nearest rank, and keeps them in the result.
func checkLatency(ev *Evidence, res *report.Result) report.Check {
	var took []time.Duration
	for _, c := range ev.Cases {
		for _, a := range c.Runs {
			if a.Completed() {
				took = append(took, a.Duration)
			}
		}
	}
	if len(took) == 0 {
		return notRun("there is no complete answer", report.CheckBudget+"/latency")[0]
	}
	slices.Sort(took)
	rank := func(percent int) time.Duration { return took[(len(took)*percent+99)/100-1] }
	p50, p95 := rank(50), rank(95)
	res.Latency = &report.Latency{P50MS: p50.Milliseconds(), P95MS: p95.Milliseconds(), MaxMS: took[len(took)-1].Milliseconds()}
	var problems []report.Problem
	b := ev.Suite.Task.Contract.Budget
	for _, t := range []struct {
		name       string
		bound, got time.Duration
	}{{"p50", b.P50, p50}, {"p95", b.P95, p95}} {
		if t.bound > 0 && t.got > t.bound {
			problems = append(problems, report.Problem{Pointer: "latency " + t.name, Expected: "at most " + t.bound.String(), Got: t.got.Round(time.Millisecond).String()})
		}
	}
	switch {
	case len(problems) > 0:
		return failed(report.CheckBudget, "latency", CodeTooSlow, problems)
	case b.P50 == 0 && b.P95 == 0:
		return report.Check{Name: report.CheckBudget, Aspect: "latency", Status: report.NotApplicable, Message: "the task sets no bound"}
	}
	return passed(report.CheckBudget, "latency")
}

// checkCost judges the most expensive run of a case.
func checkCost(ev *Evidence, c *report.Case) report.Check {
	bound := ev.Suite.Task.Contract.Budget.Cost
	if bound == "" {
		return report.Check{Name: report.CheckBudget, Aspect: "cost", Status: report.NotApplicable, Message: "the task sets no bound"}
	}
	most, err := decimal.NewFromString(bound)
	if err != nil {
		return failed(report.CheckBudget, "cost", CodeCostUnknown, []report.Problem{{Pointer: "cost", Expected: "a bound that is a number", Got: bound}})
	}
	var problems []report.Problem
	code, answered := "", false
	for _, run := range c.Runs {
		if !keptSchema(run) && run.Cost == "" {
			continue // it failed, and nothing was billed that anybody knows of
		}
		answered = true
		cost, err := decimal.NewFromString(run.Cost)
		switch {
		case err != nil:
			code = CodeCostUnknown
			problems = append(problems, report.Problem{Pointer: "cost", Expected: "one that is known, since the task bounds it", Got: fmt.Sprintf("no price or no usage in run %d", run.Number)})
		case cost.GreaterThan(most):
			if code == "" {
				code = CodeTooExpensive
			}
			problems = append(problems, report.Problem{Pointer: "cost", Expected: "at most " + bound + " " + ev.Endpoint.Target.Config.Currency,
				Got: fmt.Sprintf("%s in run %d", run.Cost, run.Number)})
		}
	}
	switch {
	case len(problems) > 0:
		return failed(report.CheckBudget, "cost", code, problems)
	case !answered:
		return notRun("there is no complete answer", report.CheckBudget+"/cost")[0]
	}
	return passed(report.CheckBudget, "cost")
}

// totalCost sums up everything that was sent.
func totalCost(ev *Evidence) *report.Cost {
	total, out := decimal.Zero, &report.Cost{Currency: ev.Endpoint.Target.Config.Currency}
	add := func(o *providers.Outcome) {
		if o == nil || o.Kind == 0 {
			return
		}
		text, ok := "", false
		if o.Usage != nil {
			text, ok = ev.Endpoint.Target.Model.PricePerMillion.Cost(*o.Usage)
		}
		cost, err := decimal.NewFromString(text)
		if !ok || err != nil {
			out.Unpriced++
			return
		}
		total = total.Add(cost)
	}
	for i := range ev.Cases {
		c := &ev.Cases[i]
		for j := range c.Runs {
			add(&c.Runs[j].Outcome)
		}
		add(&c.Answer.Outcome)
		if c.Trip != nil {
			add(c.Trip.Outcome)
		}
	}
	for _, f := range ev.Faults {
		if f.Aspect == FaultCutOff && ev.Mode != report.Replay && f.Status != report.NotApplicable {
			out.Unpriced++
		}
	}
	out.Amount = total.String()
	return out
}

// checkRoundTrip wants the provider's answer to come back from a job as it was, and as valid as ever.
func checkRoundTrip(task *tasks.Definition, in *CaseEvidence) report.Check {
	t := in.Trip
	if t == nil {
		return notRun("this runner makes no round trips", report.CheckRoundTrip)[0]
	}
	if t.State != "SUCCEEDED" || t.Read == nil {
		return failed(report.CheckRoundTrip, "", t.Code, []report.Problem{{Pointer: "the job", Expected: "one that is SUCCEEDED with a result", Got: strings.TrimSpace(t.State + " " + t.Code)}})
	}
	if issues := task.OutputSchema.ValidateOutput(t.Read); len(issues) > 0 {
		return failed(report.CheckRoundTrip, "", CodeOutputInvalid, []report.Problem{{Pointer: issues[0].Pointer, Expected: issues[0].Message, Got: showAt(t.Read, issues[0].Pointer)}})
	}
	var problems []report.Problem
	for _, d := range golden.Compare(golden.Mode{Kind: golden.ModeExact}, "", t.Answered, t.Read) {
		problems = append(problems, report.Problem{Pointer: d.Pointer, Expected: d.Expected, Got: d.Got})
	}
	if len(problems) > 0 {
		return failed(report.CheckRoundTrip, "", CodeNotTheSame, problems)
	}
	return passed(report.CheckRoundTrip, "")
}
