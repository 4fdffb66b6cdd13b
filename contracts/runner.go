package contracts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/schema"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/providers"
)

// DefaultConcurrency is how many requests a run has under way at once.
const DefaultConcurrency = 4

// MaxRuns bounds the runs per case.
const MaxRuns = 100

// CodePromptNotRendered is the code of a check for which no request could be made.
const CodePromptNotRendered = "PROMPT_NOT_RENDERED"

// CodeTokensNotCounted is the code of a check whose prompt the provider's counting endpoint did not count.
const CodeTokensNotCounted = "TOKENS_NOT_COUNTED"

// CodeOutputInvalid is the code of a check whose output is JSON and breaks the schema, as it is of a job's attempt.
const CodeOutputInvalid = "OUTPUT_INVALID"

var (
	// ErrUnknownTarget says that no configured provider serves the target.
	ErrUnknownTarget = errors.New("the target is not configured")
	// ErrInterrupted says that the run was stopped before it was over; nothing can be said about the target.
	ErrInterrupted = errors.New("the contract run was interrupted")
	// ErrMode says that the mode cannot be run.
	ErrMode = errors.New("the mode cannot be run")
)

// Endpoint is a target that can be asked.
type Endpoint struct {
	Target       providers.Target // with its sender, its model's limits and its tokenizer
	ConfigDigest string           // over the provider's configuration without secrets and the adapter's version
}

// Targets finds endpoints by target.
type Targets interface {
	Endpoint(target string) (Endpoint, bool)
}

// Runner runs suites at targets.
type Runner struct {
	targets     Targets
	now         func() time.Time
	ranBy       string
	concurrency int
}

// NewRunner returns a runner. ranBy names who runs it in the results; now is the clock, time.Now if nil.
func NewRunner(targets Targets, ranBy string, now func() time.Time) *Runner {
	if now == nil {
		now = time.Now
	}
	return &Runner{targets: targets, now: now, ranBy: ranBy, concurrency: DefaultConcurrency}
}

// Run runs every case of the suite at the target: runs times each, or as often as the task's contract says if runs is 0.
// Each run is exactly one request. A target that answers badly is a result; an error means that nothing can be said about
// it: ErrUnknownTarget, ErrMode or ErrInterrupted.
func (r *Runner) Run(ctx context.Context, s Suite, target string, mode report.Mode, runs int) (report.Result, error) {
	if mode != report.Live {
		return report.Result{}, fmt.Errorf("%w: %q; only live is built", ErrMode, mode)
	}
	ep, ok := r.targets.Endpoint(target)
	if !ok {
		return report.Result{}, fmt.Errorf("%w: %s", ErrUnknownTarget, target)
	}
	if runs == 0 {
		runs = s.Task.Contract.Runs
	}
	res := report.Result{
		Task: s.Task.Name, TaskLabel: s.Task.Version, Target: target, Mode: mode, Runs: runs, RanBy: r.ranBy,
		StartedAt: r.now().UTC(),
		Basis: report.Basis{
			TaskVersion: s.Task.Digest, CasesDigest: s.CasesDigest, ConfigDigest: ep.ConfigDigest,
			ChecksVersion: report.ChecksVersion,
		},
		Cases: make([]report.Case, len(s.Cases)),
	}

	var wg sync.WaitGroup
	slots := make(chan struct{}, r.concurrency)
	for i, c := range s.Cases {
		res.Cases[i] = report.Case{Name: c.Name, Runs: make([]report.Run, runs)}
		for n := range runs {
			slot := &res.Cases[i].Runs[n]
			slots <- struct{}{}
			if ctx.Err() != nil {
				<-slots
				continue
			}
			wg.Go(func() {
				defer func() { <-slots }()
				*slot = r.runOnce(ctx, s.Task, ep, c, n+1)
			})
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		return report.Result{}, fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
	}
	res.FinishedAt = r.now().UTC()
	res.Judge()
	return res, nil
}

func (r *Runner) runOnce(ctx context.Context, task *tasks.Definition, ep Endpoint, c Case, number int) report.Run {
	run := report.Run{Number: number}
	prompt, err := task.Render(c.Input)
	if err != nil {
		run.Checks = []report.Check{{
			Name: report.CheckSchema, Status: report.Failed, Code: CodePromptNotRendered,
			Message: "expected: an output; came: no request, since the prompt could not be rendered: " + err.Error(),
		}}
		return run
	}
	f, err := ep.Target.CountWindow(ctx, prompt.System, prompt.User, task.MaxOutputTokens)
	if err != nil {
		f = &providers.Failure{Code: CodeTokensNotCounted, Message: err.Error()}
	}
	if f != nil {
		run.Checks = []report.Check{{
			Name: report.CheckSchema, Status: report.Failed, Code: f.Code,
			Message: "expected: an output; came: no request, since " + f.Message,
		}}
		return run
	}
	// Nobody waits for late answers here, so an unknown outcome ends the request instead of letting it linger.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	listener := &listener{stop: cancel}
	started := r.now()
	// Past the circuit breaker of internal/dispatch: a contract run is asked for, and says what it found.
	out := ep.Target.Sender.Send(ctx, providers.Request{
		AttemptID:       "contract-" + rand.Text(),
		Task:            task.Name,
		Model:           ep.Target.Model.Name,
		System:          prompt.System,
		Prompt:          prompt.User,
		Input:           c.Input,
		Schema:          task.OutputSchemaJSON,
		Temperature:     task.Temperature,
		MaxOutputTokens: ep.Target.Model.OutputBudget(task.MaxOutputTokens),
	}, listener)
	run.DurationMS = r.now().Sub(started).Milliseconds()
	if out.Usage != nil {
		run.InputTokens, run.OutputTokens = out.Usage.InputTokens, out.Usage.OutputTokens
	}
	run.Checks = []report.Check{checkSchema(task.OutputSchema, out, listener.unknown)}
	return run
}

// listener hears of a request's progress. Send calls it from one goroutine and returns after its last call.
type listener struct {
	stop    context.CancelFunc
	unknown *providers.Failure
}

func (l *listener) Acknowledged(providers.Acknowledgement) {}
func (l *listener) Progress()                              {}
func (l *listener) Unknown(f providers.Failure) {
	l.unknown = &f
	l.stop()
}

// checkSchema judges one outcome. An outcome that became unknown has failed even if an answer came late: within a job it
// would have blocked the route.
func checkSchema(output *schema.Schema, out providers.Outcome, unknown *providers.Failure) report.Check {
	failed := report.Check{Name: report.CheckSchema, Status: report.Failed}
	failure := out.Failure
	if unknown != nil {
		failure = unknown
	}
	switch {
	case unknown != nil, out.Kind != providers.Completed:
		if failure == nil {
			failure = &providers.Failure{Code: "UNCLASSIFIED", Message: "the adapter gave no reason"}
		}
		failed.Code = failure.Code
		failed.Message = "expected: a complete answer; came: " + failure.Message
		return failed
	}
	issues := output.ValidateOutput(out.Output)
	if len(issues) == 0 {
		return report.Check{Name: report.CheckSchema, Status: report.Passed}
	}
	failed.Code = CodeOutputInvalid
	if issues[0].Rule == schema.RuleSyntax {
		failed.Code = providers.CodeNotJSON
	}
	var parts []string
	for i, is := range issues {
		if i == maxProblems {
			parts = append(parts, fmt.Sprintf("and %d more", len(issues)-maxProblems))
			break
		}
		got := kindAt(out.Output, is.Pointer)
		is.Pointer = shorten(is.Pointer)
		p := report.Problem{Pointer: is.Pointer, Expected: is.Message + " (" + is.Rule + ")", Got: got}
		failed.Problems = append(failed.Problems, p)
		parts = append(parts, p.String())
	}
	failed.Message = strings.Join(parts, "; ")
	return failed
}

// A model may answer with any number of undeclared keys of any length; a report stays readable.
const (
	maxProblems     = 20
	maxPointerRunes = 120
)

func shorten(pointer string) string {
	if r := []rune(pointer); len(r) > maxPointerRunes {
		return string(r[:maxPointerRunes]) + "…"
	}
	return pointer
}
