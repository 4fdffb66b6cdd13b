package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// Format is how a report is written.
type Format string

const (
	Table Format = "table" // for people
	JSON  Format = "json"
	JUnit Format = "junit" // for CI servers
)

// Write writes results in the format. It fails on an unknown format before it writes anything.
func Write(w io.Writer, format Format, results []Result) error {
	switch format {
	case Table:
		return writeTable(w, results)
	case JSON:
		return writeJSON(w, results)
	case JUnit:
		return writeJUnit(w, results)
	}
	return fmt.Errorf("the format %q is not known; table, json and junit are", format)
}

// Known reports whether Write takes the format.
func (f Format) Known() bool { return f == Table || f == JSON || f == JUnit }

func writeTable(w io.Writer, results []Result) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, "TASK\tVERSION\tTARGET\tMODE\tCASES\tRUNS\tCHECKS\tFAILED\tRESULT")
	for i := range results {
		r := &results[i]
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", r.Task, r.TaskLabel, r.Target, r.Mode,
			len(r.Cases), r.Runs, len(r.All()), len(r.Failures()), verdict(r.Passed))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for i := range results {
		failures := results[i].Failures()
		if len(failures) == 0 {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s at %s:\n", results[i].Task, results[i].Target); err != nil {
			return err
		}
		for _, f := range failures {
			if _, err := fmt.Fprintf(w, "  %s\n", f); err != nil {
				return err
			}
			for _, p := range f.Check.Problems {
				if _, err := fmt.Fprintf(w, "    %s\n", p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p Problem) String() string {
	place := p.Pointer
	if place == "" {
		place = "the whole output"
	}
	s := place + ": expected: " + p.Expected
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

func writeJSON(w io.Writer, results []Result) error {
	if results == nil {
		results = []Result{}
	}
	passed := len(results) > 0
	for i := range results {
		passed = passed && results[i].Passed
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Format  int      `json:"format"`
		Passed  bool     `json:"passed"`
		Results []Result `json:"results"`
	}{1, passed, results})
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Time      string      `xml:"time,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Skipped *junitSkipped `xml:"skipped,omitempty"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func writeJUnit(w io.Writer, results []Result) error {
	var doc junitSuites
	for i := range results {
		r := &results[i]
		s := junitSuite{
			Name: r.Task + " at " + r.Target, Timestamp: r.StartedAt.UTC().Format("2006-01-02T15:04:05"),
			Time: seconds(r.FinishedAt.Sub(r.StartedAt)),
		}
		for _, p := range r.All() {
			jc := junitCase{Class: r.Task + "." + r.Target, Name: junitName(p), Time: seconds(duration(r, p))}
			switch p.Check.Status {
			case Passed:
			case NotApplicable, NotRun: // what was not run is no pass, and some check before it has failed
				jc.Skipped = &junitSkipped{Message: string(p.Check.Status) + ": " + p.Check.Message}
				s.Skipped++
			default:
				f := &junitFailure{Type: p.Check.Code, Message: p.Check.Message}
				for _, problem := range p.Check.Problems {
					f.Text += problem.String() + "\n"
				}
				jc.Failure = f
				s.Failures++
			}
			s.Tests++
			s.Cases = append(s.Cases, jc)
		}
		doc.Suites = append(doc.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func junitName(p Place) string {
	name := p.Check.Full()
	switch {
	case p.Run > 0:
		return fmt.Sprintf("%s run %d %s", p.Case, p.Run, name)
	case p.Case != "":
		return p.Case + " " + name
	}
	return name
}

// duration is that of the run whose first check it is, so that a server that adds up its cases gets the suite's.
func duration(r *Result, p Place) time.Duration {
	for _, c := range r.Cases {
		for _, run := range c.Runs {
			if c.Name == p.Case && run.Number == p.Run && run.Checks[0].Full() == p.Check.Full() {
				return time.Duration(run.DurationMS) * time.Millisecond
			}
		}
	}
	return 0
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
