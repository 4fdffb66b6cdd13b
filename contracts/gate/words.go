package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/docket-gateway/docket/contracts/report"
)

// maxReasons bounds how many failed checks, and how many changed parts of one kind, a decision names.
const maxReasons = 3

// changes says what is not as it was when the result was made. It names the parts, or, for results of earlier versions, which
// have none, the digest that differs.
func changes(s *stored, w want, now time.Time) []string {
	had, of := s.basis, "the result of "+ago(s.createdAt, now)
	parts := s.partsOf()
	var other report.Parts
	if len(parts) > 0 && w.parts != nil && had.Digest(w.target) != w.basis.Digest(w.target) {
		other = w.parts()
	}
	var out []string
	for _, d := range []struct {
		what, had, want string
		groups          []string
	}{
		{"task version", had.TaskVersion, w.basis.TaskVersion, []string{report.PartTask}},
		{"provider configuration or adapter", had.ConfigDigest, w.basis.ConfigDigest, []string{report.PartProvider}},
		{"task's cases", had.CasesDigest, w.basis.CasesDigest, []string{report.PartCase, report.PartGolden}},
		{"version of the checks", had.ChecksVersion, w.basis.ChecksVersion, nil},
	} {
		if d.had == d.want {
			continue
		}
		list := parts.Changes(other, d.groups...)
		if len(list) == 0 {
			out = append(out, fmt.Sprintf("The %s changed since %s: it was for %s, now it is %s.", d.what, of, short(d.had), short(d.want)))
			continue
		}
		for i, c := range list {
			if more := len(list) - i; i == maxReasons && more > 1 {
				out = append(out, fmt.Sprintf("%d more parts of the %s changed since %s.", more, d.what, of))
				break
			}
			out = append(out, sentence(c, of))
		}
	}
	return out
}

// sentence says one change.
func sentence(c report.Change, since string) string {
	group, name, _ := strings.Cut(c.Name, "/")
	var what string
	switch group + "/" {
	case report.PartCase:
		what = "the case " + name
	case report.PartGolden:
		what = "the golden " + name
	case report.PartTask:
		what = name
		if !strings.HasSuffix(name, ".tmpl") && !strings.HasSuffix(name, ".json") {
			what = "the key " + name + " of task.yaml"
		}
	case report.PartProvider:
		what = providerPart(name)
	default:
		what = c.Name
	}
	had, got, shown := c.Values()
	var text string
	switch {
	case c.Had == "":
		text = fmt.Sprintf("%s was added since %s.", what, since)
	case c.Got == "":
		text = fmt.Sprintf("%s was removed since %s.", what, since)
	case shown:
		text = fmt.Sprintf("%s is %s now, it was %s at %s.", what, value(got), value(had), since)
	default:
		text = fmt.Sprintf("%s changed since %s.", what, since)
	}
	if strings.HasPrefix(text, "the ") {
		text = "T" + text[1:]
	}
	return text
}

func value(v string) string {
	if v == "" {
		return "not set"
	}
	return v
}

// ofModel are the parts that stand under models in the configuration.
var ofModel = []string{"context_window", "max_output_tokens", "tokenizer", "reasoning", "structured_output"}

func providerPart(name string) string {
	switch {
	case name == "adapter":
		return "the adapter"
	case name == "base_url":
		return "the base URL of the provider"
	case name == "kind":
		return "the kind of the provider"
	case slices.Contains(ofModel, name) || strings.HasPrefix(name, "price_per_million"):
		return "the setting " + name + " of the model"
	}
	return "the setting " + name + " of the provider"
}

// disbelief says why a stored result that is called a pass is none. Nothing but its report is believed: a row may have been
// written by an earlier version, which knew fewer checks, or by hand.
func disbelief(s *stored, w want) []string {
	if s.report == nil {
		return []string{"The stored result's report cannot be read."}
	}
	judged := *s.report
	judged.Judge()
	switch {
	case s.digest != s.basis.Digest(w.target):
		return []string{"The stored result does not match its own digest."}
	case judged.Digest != s.digest || judged.Task != w.task || judged.Mode != s.mode:
		return []string{"The stored result's report is that of another run."}
	case judged.Passed:
		return nil
	}
	if why := unfinished(&judged); len(why) > 0 {
		return why
	}
	return []string{"The stored result's report is not that of a pass."}
}

// unfinished names the checks that a result does not have or that were not run.
func unfinished(r *report.Result) []string {
	var lacking, out []string
	all := r.All()
	for _, name := range report.Checks() {
		if !slices.ContainsFunc(all, func(p report.Place) bool { return p.Check.Name == name }) {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) > 0 {
		out = append(out, fmt.Sprintf("The result says nothing of %s, which a pass has to.", strings.Join(lacking, ", ")))
	}
	open := slices.DeleteFunc(all, func(p report.Place) bool { return p.Check.Status != report.NotRun })
	for i, p := range open {
		if i == maxReasons {
			out = append(out, fmt.Sprintf("%d more checks were not run.", len(open)-i))
			break
		}
		out = append(out, fmt.Sprintf("Not run: %s.", p))
	}
	return out
}

// failures says which checks failed, or why a result is no pass without any.
func failures(s *stored, w want, now time.Time) []string {
	head := fmt.Sprintf("The contract failed at %s %s", w.target, ago(s.createdAt, now))
	if s.report == nil {
		return []string{head + "; the report cannot be read."}
	}
	failed := s.report.Failures()
	if len(failed) == 0 {
		return append([]string{head + "."}, unfinished(s.report)...)
	}
	var out []string
	for i, f := range failed {
		if i == maxReasons {
			out = append(out, fmt.Sprintf("%d more checks failed.", len(failed)-maxReasons))
			break
		}
		out = append(out, fmt.Sprintf("%s: %s.", head, withoutValues(f)))
	}
	return out
}

// withoutValues leaves out what came: reasons go into attempts' errors and logs, which hold no output. The report has it.
func withoutValues(p report.Place) report.Place {
	for _, problem := range p.Check.Problems {
		whole := problem.String()
		problem.Got = ""
		p.Check.Message = strings.Replace(p.Check.Message, whole, problem.String(), 1)
	}
	return p
}

// ago is an age for people.
func ago(then, now time.Time) string {
	if now.Sub(then) < time.Second {
		return "a moment ago"
	}
	return humanize.RelTime(then, now, "ago", "from now")
}

func age(then, now time.Time) time.Duration { return max(0, now.Sub(then)).Round(time.Second) }

// short keeps enough of a digest for people to compare.
func short(digest string) string {
	const n = len("sha256:") + 12
	if len(digest) > n {
		return digest[:n]
	}
	return digest
}
