package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
)

// run is one `docket contracts run` under way.
type run struct {
	Options
	runner   Runner
	recorder Recorder
	progress *progress
	std      Streams
	spending *contracts.Spending // nil: no cap
	journal  *Journal            // nil: none is kept
}

// outcome is what came of one selection.
type outcome struct {
	selection
	result   report.Result
	evidence *contracts.Evidence
	err      error
	done     bool // there is a result
}

// collected is what came of them all.
type collected struct {
	list        []outcome // in the order in which they were selected
	comparisons []report.Comparison
	refused     bool // a golden was not written
	errs        []error
}

func (r *run) open() (err error) {
	// A replay costs nothing.
	if r.MaxCost != "" && r.Mode != report.Replay {
		if r.spending, err = contracts.NewSpending(r.MaxCost); err != nil {
			return err //nolint:wrapcheck // says which rule it breaks
		}
	}
	file := r.Journal
	if file == "" {
		file = r.JournalDefault
	}
	switch {
	case r.Mode != report.Live:
		return nil
	case file == "" && r.Resume:
		return errors.New("there is no folder for caches; name the journal with --journal")
	case file == "":
		return nil
	}
	if r.journal, err = OpenJournal(file, r.Resume); err != nil {
		return err
	}
	if r.Resume && !r.Quiet {
		r.progress.say("resuming with %d answers of %s", r.journal.Len(), file)
	}
	return nil
}

// collect runs everything at once; the slots bound the requests.
func (r *run) collect(ctx context.Context, picked []selection) collected {
	o := contracts.Options{Mode: r.Mode, Runs: r.Runs, Slots: contracts.NewSlots(r.Concurrency), Progress: r.progress, Spending: r.spending}
	if r.journal != nil {
		o.Journal = r.journal
	}
	c := collected{list: make([]outcome, len(picked))}
	var wg sync.WaitGroup
	for i, p := range picked {
		wg.Go(func() { c.list[i] = r.one(ctx, p, o) })
	}
	wg.Wait()
	r.progress.end()
	if r.Update {
		r.update(ctx, &c)
	}
	for _, one := range c.list {
		if one.err != nil {
			c.errs = append(c.errs, fmt.Errorf("%s at %s: %w", one.suite.Task.Name, one.target, one.err))
		}
	}
	if r.Against != "" {
		r.compare(&c)
	}
	return c
}

func (r *run) one(ctx context.Context, p selection, o contracts.Options) outcome {
	out := outcome{selection: p}
	out.result, out.evidence, out.err = r.runner.Run(ctx, p.suite, p.target, o)
	if out.err != nil {
		return out
	}
	out.done = true
	if !r.Update { // else the goldens are written first
		out.err = r.recorder.Record(ctx, out.result)
	}
	r.progress.finished(out.result)
	return out
}

// compare has each target behind the one that it is compared with.
func (r *run) compare(c *collected) {
	for i := 0; i+1 < len(c.list); i += 2 {
		against, target := c.list[i], c.list[i+1]
		if !against.done || !target.done {
			continue // its error says why
		}
		comparison, err := contracts.Compare(against.evidence, target.evidence, against.result, target.result)
		if err != nil {
			c.errs = append(c.errs, fmt.Errorf("%s: %w", target.suite.Task.Name, err))
			continue
		}
		c.comparisons = append(c.comparisons, comparison)
	}
}

// finish writes the report and says what is left.
func (r *run) finish(c collected) int {
	var results []report.Result
	for _, one := range c.list {
		if one.done {
			results = append(results, one.result)
		}
	}
	if err := r.report(results, c.comparisons); err != nil {
		c.errs = append(c.errs, err)
	}
	if r.journal != nil {
		kept, err := r.journal.Close(len(c.errs) == 0)
		if err != nil {
			c.errs = append(c.errs, err)
		}
		if kept > 0 {
			r.progress.say("%d answers are kept in %s; the same command with --resume takes them up", kept, r.journal.file)
		}
	}
	if r.spending != nil && !r.Quiet || slices.ContainsFunc(c.errs, func(err error) bool { return errors.Is(err, contracts.ErrMaxCost) }) {
		r.progress.say("spent %s of at most %s", r.spending.Spent(), r.MaxCost)
	}
	if len(c.errs) > 0 {
		return unusable(r.std, errors.Join(c.errs...))
	}
	if c.refused || slices.ContainsFunc(results, func(r report.Result) bool { return !r.Passed }) ||
		slices.ContainsFunc(c.comparisons, func(c report.Comparison) bool { return !c.Same }) {
		return ExitFailed
	}
	return ExitPassed
}

// report writes all that were asked for.
func (r *run) report(results []report.Result, comparisons []report.Comparison) error {
	further, err := r.further()
	if err != nil {
		return err // not reachable: it was checked before anything was sent
	}
	var b bytes.Buffer
	errs := []error{report.Write(&b, r.Format, results, comparisons...), r.deliver(b.Bytes(), r.std.Out)}
	for file, format := range further {
		var b bytes.Buffer
		errs = append(errs, report.Write(&b, format, results, comparisons...), Options{Output: file}.deliver(b.Bytes(), nil))
	}
	return errors.Join(errs...)
}
