package report

import "cmp"

// Comparison is where a target differs from another one, for which it is to stand in.
type Comparison struct {
	Task    string           `json:"task"`
	Target  string           `json:"target"`
	Against string           `json:"against"`
	Same    bool             `json:"same"`   // the target keeps the operational contract that the other one keeps
	Checks  []Verdicts       `json:"checks"` // of the targets as a whole
	Cases   []CaseComparison `json:"cases"`
	Latency *Measure         `json:"latency,omitempty"` // p50 over all runs
	Cost    *Measure         `json:"cost,omitempty"`    // of everything that was sent
}

// CaseComparison is one case's.
type CaseComparison struct {
	Name      string     `json:"name"`
	Same      bool       `json:"same"`
	Checks    []Verdicts `json:"checks"`
	Structure []Problem  `json:"structure,omitempty"` // the most frequent structures, where they differ
	Values    []Problem  `json:"values,omitempty"`    // of the pointers that the case compares by exact, the most frequent ones
	Note      string     `json:"note,omitempty"`      // why something could not be compared
	Latency   *Measure   `json:"latency,omitempty"`   // the median run's
	Cost      *Measure   `json:"cost,omitempty"`      // the median run's
}

// Verdicts are what one check said of both.
type Verdicts struct {
	Check   string `json:"check"` // with its aspect
	Against Status `json:"against"`
	Target  Status `json:"target"`
	Breaks  bool   `json:"breaks"` // the other one passes it and the target does not
}

// Measure is a figure of both, as exact decimals. Ratio is the target's divided by the other's, to two places; it is empty where
// that cannot be told.
type Measure struct {
	Against string `json:"against"`
	Target  string `json:"target"`
	Unit    string `json:"unit"` // ms, or a currency
	Ratio   string `json:"ratio,omitempty"`
}

func (m *Measure) String() string {
	if m == nil {
		return "not known"
	}
	s := m.Target + " " + m.Unit + " against " + m.Against + " " + m.Unit
	if m.Ratio != "" {
		s += " (" + m.Ratio + "×)"
	}
	return s
}

// CompareVerdicts lists what each check said of the case at both targets, of the targets as a whole if it is empty. A check that
// only the target has counts as not run at the other.
func CompareVerdicts(against, target Result, name string) []Verdicts {
	var out []Verdicts
	at := map[string]int{}
	for side, r := range []Result{against, target} {
		for _, p := range r.All() {
			if p.Case != name {
				continue
			}
			full := p.Check.Full()
			i, ok := at[full]
			if !ok {
				i = len(out)
				at[full] = i
				out = append(out, Verdicts{Check: full})
			}
			into := &out[i].Against
			if side == 1 {
				into = &out[i].Target
			}
			*into = worse(*into, p.Check.Status)
		}
	}
	for i := range out {
		v := &out[i]
		v.Against, v.Target = cmp.Or(v.Against, NotRun), cmp.Or(v.Target, NotRun)
		v.Breaks = v.Against == Passed && (v.Target == Failed || v.Target == NotRun)
	}
	return out
}

// severity orders verdicts: the first one that occurs is that of a whole.
var severity = []Status{Failed, NotRun, Passed, NotApplicable}

func worse(a, b Status) Status {
	for _, s := range severity {
		if a == s || b == s {
			return s
		}
	}
	return cmp.Or(a, b)
}

// breaking are the verdicts that break the contract.
func breaking(all []Verdicts) []Verdicts {
	var out []Verdicts
	for _, v := range all {
		if v.Breaks {
			out = append(out, v)
		}
	}
	return out
}
