package verify

import (
	"fmt"
	"slices"
	"strings"
)

// most is how many violations of one rule are told; the rest is counted.
const most = 20

// rules in the order in which they are reported. Each is a pure function of the history.
var rules = []struct {
	name  string
	check func(*judge)
}{
	{"history", wellFormed},
	{"I1", oneJobPerKey},
	{"I2", oneIntentPerKey},
	{"I3", oneAtATime},
	{"I4", neverGuessed},
	{"I5", countedVersion},
	{"I5", rightResult},
	{"I5", droppedStaysDropped},
	{"I6", oneWinner},
	{"result slot", linearSlot},
	{"I7", numberedLog},
	{"I7", replayedLog},
	{"I7", deliveredLog},
	{"I8", nothingStranded},
	{"I9", sentOnce},
	{"I10", provedOnly},
	{"I11", unseenByOthers},
	{"I11", signedByWho},
	{"I12", terminalStays},
	{"I12", verdictsStand},
	{"I13", validOnly},
}

// Check judges a history. No violation means that nothing in it contradicts the rules, not that there is no fault: what
// nobody saw and nothing recorded is not judged. The order of violations depends on the history alone. Of one rule at most
// 20 are told, and then how many more there are.
func Check(h *History) []Violation {
	j := &judge{view: newView(h), more: map[string]int{}, told: map[string]int{}}
	for _, r := range rules {
		j.rule = r.name
		r.check(j)
	}
	var names []string
	for _, r := range rules {
		if j.more[r.name] > 0 && !slices.Contains(names, r.name) {
			names = append(names, r.name)
			j.found = append(j.found, Violation{Rule: r.name, Text: fmt.Sprintf("and %d more", j.more[r.name]), More: j.more[r.name]})
		}
	}
	return j.found
}

// Report is the violations as text for people: how many there are, by rule, and then each.
func Report(vs []Violation) string {
	if len(vs) == 0 {
		return "no violations\n"
	}
	var names []string
	count, all := map[string]int{}, 0
	for _, v := range vs {
		if count[v.Rule] == 0 {
			names = append(names, v.Rule)
		}
		n := max(v.More, 1)
		count[v.Rule] += n
		all += n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d violations:", all)
	for _, name := range names {
		fmt.Fprintf(&b, " %s %d;", name, count[name])
	}
	b.WriteString("\n")
	for _, v := range vs {
		b.WriteString("  " + strings.ReplaceAll(v.String(), "\n", "\n    ") + "\n")
	}
	return b.String()
}

// judge collects what a rule finds.
type judge struct {
	*view
	rule  string
	found []Violation
	told  map[string]int
	more  map[string]int
}

// broken tells a violation of the rule that is being checked.
func (j *judge) broken(job, format string, args ...any) {
	if j.told[j.rule] == most {
		j.more[j.rule]++
		return
	}
	j.told[j.rule]++
	j.found = append(j.found, Violation{Rule: j.rule, Job: job, Text: fmt.Sprintf(format, args...)})
}
