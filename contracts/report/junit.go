package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"time"
)

// What CI servers read, as Jenkins' and Maven Surefire's schemas have it: counts that add up, and each test case with a class and a
// name of its own.

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Timestamp string      `xml:"timestamp,attr,omitempty"`
	Time      string      `xml:"time,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	Skipped *junitSkipped `xml:"skipped,omitempty"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

func writeJUnit(w io.Writer, results []Result, comparisons []Comparison) error {
	doc := junitSuites{Name: "docket contracts"}
	total := time.Duration(0)
	for i := range results {
		s, took := junitResult(&results[i])
		total += took
		doc.Suites = append(doc.Suites, s)
	}
	for i := range comparisons {
		doc.Suites = append(doc.Suites, junitComparison(&comparisons[i]))
	}
	for i := range doc.Suites {
		s := &doc.Suites[i]
		s.count()
		doc.Tests += s.Tests
		doc.Failures += s.Failures
	}
	doc.Time = seconds(total)
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

func (s *junitSuite) count() {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		if c.Failure != nil {
			s.Failures++
		}
		if c.Skipped != nil {
			s.Skipped++
		}
	}
}

func junitResult(r *Result) (s junitSuite, took time.Duration) {
	took = r.FinishedAt.Sub(r.StartedAt)
	s = junitSuite{Name: r.Task + " at " + r.Target, Timestamp: r.StartedAt.UTC().Format("2006-01-02T15:04:05"), Time: seconds(took)}
	for _, p := range r.All() {
		jc := junitCase{Class: r.Task + "." + r.Target, Name: junitName(p), Time: seconds(duration(r, p))}
		switch p.Check.Status {
		case Passed:
		case NotApplicable, NotRun: // what was not run is no pass: the exit code says so
			jc.Skipped = &junitSkipped{Message: string(p.Check.Status) + ": " + p.Check.Message}
		default:
			jc.Failure = &junitFailure{Type: cmp.Or(p.Check.Code, string(Failed)), Message: p.Check.Message}
			for _, problem := range p.Check.Problems {
				jc.Failure.Text += problem.String() + "\n"
			}
		}
		s.Cases = append(s.Cases, jc)
	}
	return s, took
}

// junitComparison has a test case for each case, and one for the targets as a whole.
func junitComparison(c *Comparison) junitSuite {
	s := junitSuite{Name: c.Task + ": " + c.Target + " against " + c.Against, Time: seconds(0)}
	add := func(name string, same bool, checks []Verdicts, problems []Problem, note string) {
		jc := junitCase{Class: c.Task + "." + c.Target + ".against." + c.Against, Name: name, Time: seconds(0)}
		if !same {
			f := &junitFailure{Type: "CONTRACT_DIFFERS", Message: c.Target + " breaks the operational contract that " + c.Against + " keeps"}
			if note != "" {
				f.Text += note + "\n"
			}
			for _, v := range breaking(checks) {
				f.Text += fmt.Sprintf("check %s: %s against %s\n", v.Check, v.Target, v.Against)
			}
			for _, p := range problems {
				f.Text += p.String() + "\n"
			}
			jc.Failure = f
		}
		s.Cases = append(s.Cases, jc)
	}
	add("the target", len(breaking(c.Checks)) == 0, c.Checks, nil, "")
	for _, one := range c.Cases {
		add(one.Name, one.Same, one.Checks, append(append([]Problem{}, one.Structure...), one.Values...), one.Note)
	}
	return s
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
