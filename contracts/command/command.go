// Package command is what `docket contracts run` and `docket contracts status` do, apart from reading flags.
//
// It imports contracts, contracts/gate and contracts/report.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"io/fs"
	"maps"
)

// Exit codes of both commands.
const (
	ExitPassed   = 0 // every check passed
	ExitFailed   = 1 // a check failed, a target breaks the contract of the one it is compared with, or a gate is closed
	ExitUnusable = 2 // nothing can be said: the command could not do its work
)

// Options are the flags of both commands; status has only the first ones.
type Options struct {
	Task   string        // empty: every task
	Target string        // empty: every target of each task's route
	Format report.Format // empty: table
	Output string        // file to write the report to; empty: Out

	Reports []string // further ones of the same run, each as format=file

	Against     string      // another target that Target is compared with
	Mode        report.Mode // empty: live
	Runs        int         // per case; 0: as the task's contract says
	Concurrency int         // requests at once; 0: contracts.DefaultConcurrency
	Update      bool        // writes goldens
	Resume      bool        // takes up the answers of the journal
	Journal     string      // file; empty: JournalDefault
	MaxCost     string      // decimal number; empty: no cap
	Quiet       bool        // no progress

	// JournalDefault is the journal's file if none is named; empty: none is kept then.
	JournalDefault string
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
	Out      io.Writer // the report
	Err      io.Writer // progress, what was written, and why the command could not do its work
	Terminal bool      // Err is one
}

// Run runs the selected suites, records each result as soon as it is there, writes the report and returns the exit code.
// What was recorded before something went wrong stays recorded, and is in the report.
func Run(ctx context.Context, suites []contracts.Suite, runner Runner, recorder Recorder, o Options, std Streams) int {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return unusable(std, err)
	}
	picked, err := pick(suites, o)
	if err == nil && o.Update {
		err = updatable(picked)
	}
	if err != nil {
		return unusable(std, err)
	}
	if err := o.probe(); err != nil {
		return unusable(std, err)
	}
	r := &run{Options: o, runner: runner, recorder: recorder, progress: newProgress(std, o.Quiet), std: std}
	if err := r.open(); err != nil {
		return unusable(std, err)
	}
	return r.finish(r.collect(ctx, picked))
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
		targets := s.Task.Route()
		switch {
		case o.Against != "":
			targets = []string{o.Against, o.Target}
		case o.Target != "":
			targets = []string{o.Target}
		}
		for _, t := range targets {
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

// maxConcurrency bounds what a mistyped number can start.
const maxConcurrency = 256

func (o Options) check() error {
	switch o.Mode {
	case report.Live, report.Record, report.Replay:
	default:
		return fmt.Errorf("the mode %q is not known; live, record and replay are", o.Mode)
	}
	switch {
	case !o.Format.Known():
		return fmt.Errorf("the format %q is not known; table, json, junit and html are", o.Format)
	case o.Runs < 0 || o.Runs > contracts.MaxRuns:
		return fmt.Errorf("the runs must be between 1 and %d", contracts.MaxRuns)
	case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
		return fmt.Errorf("the concurrency must be between 1 and %d", maxConcurrency)
	case o.Against != "" && o.Target == "":
		return errors.New("--against needs --target, the one that is compared with it")
	case o.Against != "" && o.Against == o.Target:
		return errors.New("--against and --target name the same target")
	case o.Update && o.Mode == report.Replay:
		return errors.New("goldens are made of what a target answers now; --update needs the mode live or record")
	case o.Resume && o.Mode != report.Live:
		// A cassette lacks what was not said while it was recorded, and a replay has nothing to save.
		return fmt.Errorf("only a run in the mode live can be resumed, not in %s", o.Mode)
	}
	_, err := o.further()
	return err
}

// further reads what Reports says: formats by file.
func (o Options) further() (map[string]report.Format, error) {
	out := map[string]report.Format{}
	for _, text := range o.Reports {
		format, file, ok := strings.Cut(text, "=")
		switch {
		case !ok || file == "" || !report.Format(format).Known():
			return nil, fmt.Errorf("the report %q is not of the form format=file with one of the formats table, json, junit and html", text)
		case out[file] != "" || file == o.Output:
			return nil, fmt.Errorf("two reports go to the file %s", file)
		}
		out[file] = report.Format(format)
	}
	return out, nil
}

// probe finds out whether the reports' files can be written, before anything is sent and paid for. It changes nothing.
func (o Options) probe() error {
	further, err := o.further()
	if err != nil {
		return err
	}
	files := slices.Sorted(maps.Keys(further))
	if o.Output != "" {
		files = append(files, o.Output)
	}
	for _, file := range files {
		if err := writable(file); err != nil {
			return fmt.Errorf("the report cannot be written: %w", err)
		}
	}
	return nil
}

func writable(file string) error {
	mode := os.O_WRONLY
	switch info, err := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist):
		mode |= os.O_CREATE | os.O_EXCL
	case err != nil:
		return err //nolint:wrapcheck // names the file
	case !info.Mode().IsRegular() && !info.IsDir():
		return nil // a pipe or terminal, which whoever reads it would take for closed
	}
	f, err := os.OpenFile(file, mode, 0o644) //nolint:gosec // a report, for whoever may see its folder
	if err != nil {
		return err //nolint:wrapcheck // names the file
	}
	err = f.Close()
	if mode&os.O_CREATE != 0 {
		err = errors.Join(err, os.Remove(file))
	}
	return err
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
