package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Folded is a check that says the same of several runs of a case.
type Folded struct {
	Case  string
	Runs  []int // empty: of the case or the target as a whole
	Check Check
}

// Open lists what keeps a result from passing: the failures, each once for all runs of a case that it says the same of, or what was
// not run if nothing failed.
func (r Result) Open() []Folded {
	var failed, notRun []Folded
	for _, p := range r.All() {
		switch p.Check.Status {
		case Passed, NotApplicable:
		case NotRun:
			notRun = fold(notRun, p)
		default:
			failed = fold(failed, p)
		}
	}
	if len(failed) > 0 {
		return failed
	}
	return notRun
}

// hidden says what Open leaves out.
func (r Result) hidden() string {
	failures, notRun := len(r.Failures()), 0
	for _, p := range r.All() {
		if p.Check.Status == NotRun {
			notRun++
		}
	}
	if failures == 0 || notRun == 0 {
		return ""
	}
	if notRun == 1 {
		return "1 check was not run"
	}
	return fmt.Sprintf("%d checks were not run", notRun)
}

func fold(all []Folded, p Place) []Folded {
	if p.Run > 0 {
		i := slices.IndexFunc(all, func(f Folded) bool { return f.Case == p.Case && len(f.Runs) > 0 && f.Check.equal(p.Check) })
		if i >= 0 {
			all[i].Runs = append(all[i].Runs, p.Run)
			return all
		}
		return append(all, Folded{Case: p.Case, Runs: []int{p.Run}, Check: p.Check})
	}
	return append(all, Folded{Case: p.Case, Check: p.Check})
}

func (c Check) equal(o Check) bool {
	return c.Full() == o.Full() && c.Status == o.Status && c.Code == o.Code && c.Message == o.Message && slices.Equal(c.Problems, o.Problems)
}

// Where is the case and the runs, in words.
func (f Folded) Where() string {
	if f.Case == "" {
		return "the target"
	}
	s := fmt.Sprintf("case %q", f.Case)
	switch len(f.Runs) {
	case 0:
		return s
	case 1:
		return s + ", run " + strconv.Itoa(f.Runs[0])
	}
	numbers := make([]string, len(f.Runs))
	for i, n := range f.Runs {
		numbers[i] = strconv.Itoa(n)
	}
	return s + ", runs " + strings.Join(numbers, ", ")
}

// Words are what is to be said of it beside its problems: the message often only repeats those in one line.
func (f Folded) Words() string {
	if len(f.Check.Problems) == 0 {
		return f.Check.Message
	}
	before, _, repeats := strings.Cut(f.Check.Message, f.Check.Problems[0].String())
	if repeats {
		return strings.TrimSuffix(strings.TrimSpace(before), ":")
	}
	return f.Check.Message
}

func (f Folded) String() string {
	s := f.Where() + ", check " + f.Check.Full() + ":"
	if f.Check.Status == NotRun {
		s += " not run:"
	}
	if f.Check.Code != "" {
		s += " " + f.Check.Code + ":"
	}
	if words := f.Words(); words != "" {
		s += " " + words
	}
	return strings.TrimSuffix(s, ":")
}
