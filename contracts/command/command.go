// Package command is what `docket contracts run` and `docket contracts status` do, apart from reading flags.
//
// It imports contracts, contracts/gate and contracts/report.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
)

// Exit codes of both commands.
const (
	ExitPassed   = 0 // every check passed
	ExitFailed   = 1 // a check failed, or a gate is closed
	ExitUnusable = 2 // nothing can be said: the command could not do its work
)

// Options are the flags of both commands; status has no mode and no runs.
type Options struct {
	Task   string        // empty: every task
	Target string        // empty: every target of each task's route
	Mode   report.Mode   // empty: live
	Runs   int           // per case; 0: as the task's contract says
	Format report.Format // empty: table
	Output string        // file to write the report to; empty: Out
}

// Recorder keeps results.
type Recorder interface {
	Record(ctx context.Context, r report.Result) error
}

// Runner runs one suite at one target.
type Runner interface {
	Run(ctx context.Context, s contracts.Suite, target string, o contracts.Options) (report.Result, *contracts.Evidence, error)
}

// Streams is where the commands write to.
type Streams struct {
	Out io.Writer // the report
	Err io.Writer // why the command could not do its work
}

// Run runs the selected suites, records each result as soon as it is there, writes the report and returns the exit code.
// What was recorded before something went wrong stays recorded, and is in the report.
func Run(ctx context.Context, suites []contracts.Suite, runner Runner, recorder Recorder, o Options, std Streams) int {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return unusable(std, err)
	}
	picked, err := pick(suites, o)
	if err != nil {
		return unusable(std, err)
	}
	var (
		results []report.Result
		errs    []error
	)
	for i, p := range picked {
		if ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("interrupted with %d of %d runs done: %w", i, len(picked), context.Cause(ctx)))
			break
		}
		res, _, err := runner.Run(ctx, p.suite, p.target, contracts.Options{Mode: o.Mode, Runs: o.Runs})
		if err == nil {
			err = recorder.Record(ctx, res)
			results = append(results, res)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s at %s: %w", p.suite.Task.Name, p.target, err))
		}
	}
	var b bytes.Buffer
	if err := report.Write(&b, o.Format, results); err != nil {
		errs = append(errs, err)
	}
	if err := o.deliver(b.Bytes(), std.Out); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return unusable(std, errors.Join(errs...))
	}
	if slices.ContainsFunc(results, func(r report.Result) bool { return !r.Passed }) {
		return ExitFailed
	}
	return ExitPassed
}

// selection is one suite at one target.
type selection struct {
	suite  contracts.Suite
	target string
	role   string
}

func pick(suites []contracts.Suite, o Options) ([]selection, error) {
	var out []selection
	for _, s := range suites {
		if o.Task != "" && s.Task.Name != o.Task {
			continue
		}
		if o.Target != "" {
			out = append(out, selection{s, o.Target, role(s, o.Target)})
			continue
		}
		for _, t := range s.Task.Route() {
			out = append(out, selection{s, t, role(s, t)})
		}
	}
	switch {
	case len(out) > 0:
		return out, nil
	case o.Task != "":
		return nil, fmt.Errorf("there is no task %q", o.Task)
	}
	return nil, errors.New("there is no task")
}

func role(s contracts.Suite, target string) string {
	switch {
	case s.Task.Target == target:
		return "primary"
	case slices.Contains(s.Task.Fallbacks, target):
		return "fallback"
	}
	return "other"
}

func (o Options) withDefaults() Options {
	if o.Mode == "" {
		o.Mode = report.Live
	}
	if o.Format == "" {
		o.Format = report.Table
	}
	return o
}

func (o Options) check() error {
	switch o.Mode {
	case report.Live, report.Record, report.Replay:
	default:
		return fmt.Errorf("the mode %q is not known; live, record and replay are", o.Mode)
	}
	if !o.Format.Known() {
		return fmt.Errorf("the format %q is not known; table, json and junit are", o.Format)
	}
	if o.Runs < 0 || o.Runs > contracts.MaxRuns {
		return fmt.Errorf("the runs must be between 1 and %d", contracts.MaxRuns)
	}
	return nil
}

// deliver writes the report to the file, or to out if none is named.
func (o Options) deliver(content []byte, out io.Writer) error {
	if o.Output == "" {
		_, err := out.Write(content)
		return err
	}
	if err := os.WriteFile(o.Output, content, 0o644); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func unusable(std Streams, err error) int {
	_, _ = fmt.Fprintf(std.Err, "docket contracts: %v\n", err)
	return ExitUnusable
}
