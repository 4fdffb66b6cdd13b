package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Format is how a report is written.
type Format string

const (
	Table Format = "table" // for people at a terminal
	JSON  Format = "json"  // as docs/contract-report.schema.json says
	JUnit Format = "junit" // for CI servers
	HTML  Format = "html"  // one page that needs nothing else
)

// Formats lists them all.
func Formats() []Format { return []Format{Table, JSON, JUnit, HTML} }

// Write writes results, and comparisons if there are any, in the format. It fails on an unknown format before it writes anything.
func Write(w io.Writer, format Format, results []Result, comparisons ...Comparison) error {
	switch format {
	case Table:
		return writeTable(w, results, comparisons)
	case JSON:
		return writeJSON(w, results, comparisons)
	case JUnit:
		return writeJUnit(w, results, comparisons)
	case HTML:
		return writeHTML(w, results, comparisons)
	}
	return fmt.Errorf("the format %q is not known; table, json, junit and html are", format)
}

// Known reports whether Write takes the format.
func (f Format) Known() bool { return slices.Contains(Formats(), f) }

// allPassed is the verdict on a whole report. One without results has shown nothing.
func allPassed(results []Result, comparisons []Comparison) bool {
	return len(results) > 0 &&
		!slices.ContainsFunc(results, func(r Result) bool { return !r.Passed }) &&
		!slices.ContainsFunc(comparisons, func(c Comparison) bool { return !c.Same })
}

func writeJSON(w io.Writer, results []Result, comparisons []Comparison) error {
	if results == nil {
		results = []Result{}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Format      int          `json:"format"`
		Passed      bool         `json:"passed"`
		Results     []Result     `json:"results"`
		Comparisons []Comparison `json:"comparisons,omitempty"`
	}{1, allPassed(results, comparisons), results, comparisons})
}

func writeTable(w io.Writer, results []Result, comparisons []Comparison) error {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "TASK\tVERSION\tTARGET\tMODE\tCASES\tRUNS\t"+strings.ToUpper(strings.Join(Checks(), "\t"))+"\tRESULT")
	for i := range results {
		r := &results[i]
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%d", r.Task, r.TaskLabel, r.Target, r.Mode, len(r.Cases), r.Runs)
		for _, name := range Checks() {
			_, _ = fmt.Fprintf(tw, "\t%s", r.Summary(name).short())
		}
		_, _ = fmt.Fprintf(tw, "\t%s\n", verdict(r.Passed))
	}
	_ = tw.Flush()
	for i := range results {
		tableProblems(&b, &results[i])
	}
	for i := range comparisons {
		tableComparison(&b, &comparisons[i])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// short is a verdict as wide as a column of the table.
func (s Status) short() string {
	switch s {
	case Passed:
		return "ok"
	case Failed:
		return "FAILED"
	case NotApplicable:
		return "n/a"
	default: // NotRun
		return "not run"
	}
}

func tableProblems(b *strings.Builder, r *Result) {
	open := r.Open()
	if len(open) == 0 {
		return
	}
	_, _ = fmt.Fprintf(b, "\n%s at %s:\n", r.Task, r.Target)
	for _, f := range open {
		_, _ = fmt.Fprintf(b, "  %s\n", f)
		for _, p := range f.Check.Problems {
			tableDiff(b, p)
		}
	}
	if more := r.hidden(); more != "" {
		_, _ = fmt.Fprintf(b, "  %s\n", more)
	}
}

func tableDiff(b *strings.Builder, p Problem) {
	_, _ = fmt.Fprintf(b, "    %s\n      - %s\n", p.place(), p.Expected)
	if p.Got != "" {
		_, _ = fmt.Fprintf(b, "      + %s\n", p.Got)
	}
}

func tableComparison(b *strings.Builder, c *Comparison) {
	same := "keeps the same operational contract"
	if !c.Same {
		same = "BREAKS the operational contract"
	}
	_, _ = fmt.Fprintf(b, "\n%s: %s against %s: %s\n  latency p50 %s, cost %s\n", c.Task, c.Target, c.Against, same, c.Latency, c.Cost)
	for _, v := range breaking(c.Checks) {
		_, _ = fmt.Fprintf(b, "  check %s: %s against %s\n", v.Check, v.Target, v.Against)
	}
	for _, one := range c.Cases {
		word := "same"
		if !one.Same {
			word = "DIFFERS"
		}
		_, _ = fmt.Fprintf(b, "  case %q: %s, latency %s, cost %s\n", one.Name, word, one.Latency, one.Cost)
		if one.Note != "" {
			_, _ = fmt.Fprintf(b, "    %s\n", one.Note)
		}
		for _, v := range breaking(one.Checks) {
			_, _ = fmt.Fprintf(b, "    check %s: %s against %s\n", v.Check, v.Target, v.Against)
		}
		for _, p := range append(slices.Clone(one.Structure), one.Values...) {
			tableDiff(b, p)
		}
	}
}

func (p Problem) place() string {
	if p.Pointer == "" {
		return "the whole output"
	}
	return p.Pointer
}

func (p Problem) String() string {
	s := p.place() + ": expected: " + p.Expected
	if p.Got != "" {
		s += "; came: " + p.Got
	}
	return s
}

func verdict(passed bool) Status {
	if passed {
		return Passed
	}
	return Failed
}
