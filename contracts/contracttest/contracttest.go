// Package contracttest runs contract suites as Go tests, so that a repository that keeps its own tasks gates its own release.
//
// It imports internal/app, which wires what runs a suite as `docket contracts run` does, and no testing library but Go's.
package contracttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/app"
)

// Options say what is run. The zero value replays the cassettes of every task that the configuration names, at its whole route.
type Options struct {
	Tasks  fs.FS       // task folders at its root, as os.DirFS gives them; nil: those that the configuration names
	Config string      // docket.yaml with the providers; empty: $DOCKET_CONFIG, docket.yaml if it is there, else the built-in demo
	Mode   report.Mode // empty: replay, which asks nobody; live and record need the providers' keys and cost money

	Task        string   // empty: every task
	Targets     []string // empty: each task's route
	Runs        int      // per case; 0: as the task's contract says
	Concurrency int      // requests at once; 0: contracts.DefaultConcurrency
	MaxCost     string   // decimal number that is never crossed; empty: no cap
	Environ     []string // entries "NAME=value" for the configuration; nil: os.Environ
}

// Run runs the suites as subtests, named task/target/case/check; what is said of a target as a whole is under
// task/target/target/check. A check that failed or was not run fails its test, one that is not applicable says why in the
// test's log. A suite that cannot be run (an unknown target, no cassette, no key) fails too: nothing is ever skipped.
func Run(t *testing.T, o Options) {
	t.Helper()
	r, err := open(t.Context(), o, t.Name())
	if err != nil {
		t.Fatalf("contracts: %v", err)
	}
	t.Cleanup(func() {
		if err := r.end(); err != nil {
			t.Errorf("contracts: %v", err)
		}
	})
	for _, s := range r.suites {
		t.Run(s.Task.Name, func(t *testing.T) {
			t.Parallel()
			for _, target := range r.targets(s) {
				t.Run(target, func(t *testing.T) {
					t.Parallel()
					res, err := r.run(t.Context(), s, target)
					if err != nil {
						t.Fatal(err)
					}
					tell(t, res)
				})
			}
		})
	}
}

// tell has one subtest for each check of each case, over all runs.
func tell(t *testing.T, res report.Result) {
	t.Helper()
	said := false
	for _, at := range places(res) {
		t.Run(at.name, func(t *testing.T) {
			for _, full := range checks(res, at.caseName) {
				t.Run(full, func(t *testing.T) {
					for _, p := range res.All() {
						if p.Case == at.caseName && p.Check.Full() == full {
							said = !verdict(t, p) || said
						}
					}
				})
			}
		})
	}
	if !res.Passed && !said { // as when it has no cases
		t.Errorf("%s at %s has not passed", res.Task, res.Target)
	}
}

// verdict reports whether the check is part of a pass.
func verdict(t *testing.T, p report.Place) bool {
	t.Helper()
	switch p.Check.Status {
	case report.Passed:
		return true
	case report.NotApplicable:
		t.Logf("not applicable: %s", p)
		return true
	case report.NotRun:
		t.Errorf("not run: %s", p)
		return false
	default: // Failed, and what a later version may say
	}
	lines := []string{p.String()}
	for _, problem := range p.Check.Problems {
		lines = append(lines, "  "+problem.String())
	}
	t.Error(strings.Join(lines, "\n"))
	return false
}

// place is a subtest and the case that it tells of, which is empty for the target as a whole.
type place struct{ name, caseName string }

func places(res report.Result) []place {
	var out []place
	for _, c := range res.Cases {
		out = append(out, place{c.Name, c.Name})
	}
	return append(out, place{"target", ""})
}

func checks(res report.Result, caseName string) []string {
	var out []string
	for _, p := range res.All() {
		if full := p.Check.Full(); p.Case == caseName && !slices.Contains(out, full) {
			out = append(out, full)
		}
	}
	return out
}

// Results runs the suites and returns what came, in the order of tasks and targets, for a program that decides about a release. A
// target that breaks its contract is a result that has not passed; an error means that nothing can be said about one or more.
func Results(ctx context.Context, o Options) ([]report.Result, error) {
	r, err := open(ctx, o, "contracttest")
	if err != nil {
		return nil, err
	}
	var (
		wg      sync.WaitGroup
		results []*report.Result
		errs    []error
		mu      sync.Mutex
	)
	for _, s := range r.suites {
		for _, target := range r.targets(s) {
			into := new(report.Result)
			results = append(results, into)
			wg.Go(func() {
				res, err := r.run(ctx, s, target)
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
					return
				}
				*into = res
			})
		}
	}
	wg.Wait()
	var out []report.Result
	for _, res := range results {
		if res.Task != "" {
			out = append(out, *res)
		}
	}
	return out, errors.Join(append(errs, r.end())...)
}

// runs are the suites of one call, which share slots and cap.
type runs struct {
	suites  []contracts.Suite
	runner  *contracts.Runner
	options contracts.Options
	end     func() error
	chosen  []string
}

func open(ctx context.Context, o Options, ranBy string) (*runs, error) {
	if o.Mode == "" {
		o.Mode = report.Replay
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Runs < 0 || o.Runs > contracts.MaxRuns || o.Concurrency < 0 {
		return nil, fmt.Errorf("the runs must be between 1 and %d, and the concurrency must not be negative", contracts.MaxRuns)
	}
	r := &runs{chosen: o.Targets, options: contracts.Options{Mode: o.Mode, Runs: o.Runs, Slots: contracts.NewSlots(o.Concurrency)}}
	if o.MaxCost != "" && o.Mode != report.Replay {
		var err error
		if r.options.Spending, err = contracts.NewSpending(o.MaxCost); err != nil {
			return nil, err //nolint:wrapcheck // says which rule it breaks
		}
	}
	opened, err := app.OpenSuites(ctx, o.Config, o.Environ, o.Tasks, o.Mode, ranBy)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the file
	}
	r.runner, r.end = opened.Runner, opened.Close
	for _, s := range opened.List {
		if o.Task == "" || s.Task.Name == o.Task {
			r.suites = append(r.suites, s)
		}
	}
	if len(r.suites) == 0 {
		return nil, errors.Join(fmt.Errorf("there is no task %q", o.Task), r.end())
	}
	return r, nil
}

func (r *runs) targets(s contracts.Suite) []string {
	if len(r.chosen) > 0 {
		return r.chosen
	}
	return s.Task.Route()
}

func (r *runs) run(ctx context.Context, s contracts.Suite, target string) (report.Result, error) {
	res, _, err := r.runner.Run(ctx, s, target, r.options)
	if err != nil {
		return report.Result{}, fmt.Errorf("%s at %s: %w", s.Task.Name, target, err)
	}
	return res, nil
}
