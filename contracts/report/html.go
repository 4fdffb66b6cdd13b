package report

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

//go:embed page.tmpl
var pageText string

// writeHTML writes one page. It has no script and asks for nothing, so that it can be kept beside a build and read anywhere.
func writeHTML(w io.Writer, results []Result, comparisons []Comparison) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"breaking":    breaking,
		"caseSummary": func(r Result, name, check string) Status { return r.summary(name, check) },
		"class":       func(s Status) string { return cssClass[s] },
		"hidden":      Result.hidden,
		"measure":     func(m *Measure) string { return m.String() },
		"place":       Problem.place,
		"time":        func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"verdict":     verdict,
		"words":       func(s Status) string { return strings.ToLower(strings.ReplaceAll(string(s), "_", " ")) },
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("the page of the report: %w", err)
	}
	finished := time.Time{}
	for i := range results {
		if results[i].FinishedAt.After(finished) {
			finished = results[i].FinishedAt
		}
	}
	data := struct {
		Verdict     Status
		Finished    string
		Checks      []string
		Results     []Result
		Comparisons []Comparison
	}{verdict(allPassed(results, comparisons)), "", Checks(), results, comparisons}
	if !finished.IsZero() {
		data.Finished = finished.UTC().Format(time.RFC3339)
	}
	var b strings.Builder
	if err := page.Execute(&b, data); err != nil {
		return fmt.Errorf("the page of the report: %w", err)
	}
	_, err = io.WriteString(w, b.String())
	return err
}

var cssClass = map[Status]string{Passed: "passed", Failed: "failed", NotApplicable: "na", NotRun: "notrun"}

// summary is the verdict on one check of a case over its runs, of the target as a whole if the case is empty; "" if it has no such
// check.
func (r Result) summary(name, check string) (s Status) {
	for _, p := range r.All() {
		if p.Case == name && p.Check.Name == check {
			s = worse(s, p.Check.Status)
		}
	}
	return s
}
