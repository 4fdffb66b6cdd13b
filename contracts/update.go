package contracts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/docket-gateway/docket/contracts/golden"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/docket-gateway/docket/internal/tasks"
)

// GoldenFile is a golden as it is to be on disk.
type GoldenFile struct {
	Path    string // inside of the task's folder, with slashes
	Content []byte // nil: there is to be none
}

// Update is the goldens that a run gives.
type Update struct {
	Files   []GoldenFile
	Refused []Refusal
}

// Refusal is a case for which nothing is written: what breaks the contract is nothing to compare others with.
type Refusal struct {
	Case string
	Why  string
}

func (r Refusal) String() string { return fmt.Sprintf("case %q: %s", r.Case, r.Why) }

// NewUpdate makes goldens of evidence and of what Judge said of it: the shared one of each case if the target is the task's
// primary, and the target's own. It writes nothing.
func NewUpdate(ev *Evidence, res report.Result) (Update, error) {
	if ev.Suite.own != ev.Suite.Task.Digest {
		return Update{}, errors.New("the cases are those of another version of the task; its goldens are written by a run of the task's own folder")
	}
	if len(res.Cases) != len(ev.Cases) {
		return Update{}, errors.New("the result is of other evidence")
	}
	var u Update
	for i := range ev.Cases {
		files, why, err := caseGoldens(ev, &ev.Cases[i], res.Cases[i])
		if err != nil {
			return Update{}, fmt.Errorf("case %q: %w", ev.Cases[i].Case.Name, err)
		}
		if why != "" {
			u.Refused = append(u.Refused, Refusal{Case: ev.Cases[i].Case.Name, Why: why})
			continue
		}
		u.Files = append(u.Files, files...)
	}
	return u, nil
}

// PromptGolden is the golden of a case's prompt at a target. It needs no answer.
func PromptGolden(task *tasks.Definition, one Case, target string) (GoldenFile, error) {
	prompt, err := task.Render(one.Input)
	if err != nil {
		return GoldenFile{}, fmt.Errorf("case %q: %w", one.Name, err)
	}
	return goldenFile(PromptGoldenFile(one.Name, target), []byte(RenderedPrompt(prompt)))
}

func caseGoldens(ev *Evidence, in *CaseEvidence, judged report.Case) (files []GoldenFile, why string, err error) {
	if why := unfit(judged); why != "" {
		return nil, why, nil
	}
	one, task := in.Case, ev.Suite.Task
	structure, why, err := commonStructure(task, in)
	if why != "" || err != nil {
		return nil, why, err
	}
	target := TargetGolden{Values: map[string]json.RawMessage{}}
	shared := SharedGolden{Structure: structure, Values: map[string]json.RawMessage{}}
	for _, pointer := range one.pointers(golden.ModeExact, golden.ModeSubset, golden.ModeTolerance) {
		mode, into := one.Compare[pointer], shared.Values
		switch {
		case mode.Kind == golden.ModeExact:
			into = target.Values
		case ev.Target != task.Target: // what is shared is the primary's
			continue
		}
		value, ok := commonValue(mode, pointer, in.Runs)
		if !ok {
			return nil, fmt.Sprintf("no run has a value at %q that all of its %d runs keep by %s, so the golden would be broken at once", pointer, len(in.Runs), mode.Kind), nil
		}
		into[pointer] = value
	}
	if ev.Target == task.Target {
		f, err := jsonGolden(SharedGoldenFile(one.Name), shared, true)
		if err != nil {
			return nil, "", err
		}
		files = append(files, f)
	}
	own, err := jsonGolden(TargetGoldenFile(one.Name, ev.Target), target, len(target.Values) > 0)
	if err != nil {
		return nil, "", err
	}
	prompt, err := goldenFile(PromptGoldenFile(one.Name, ev.Target), []byte(RenderedPrompt(in.Prompt)))
	return append(files, own, prompt), "", err
}

// unfit says why no golden can be made of what a case's runs answered.
func unfit(judged report.Case) string {
	for _, run := range judged.Runs {
		for _, c := range run.Checks {
			if (c.Name == report.CheckSchema && c.Status != report.Passed) || (c.Name == report.CheckMeaning && c.Status == report.Failed) {
				return report.Place{Run: run.Number, Check: c}.String()
			}
		}
	}
	if len(judged.Runs) == 0 {
		return "it has no runs"
	}
	return ""
}

// commonStructure is the most frequent one, if enough runs have it.
func commonStructure(task *tasks.Definition, in *CaseEvidence) (nodes []golden.Node, why string, err error) {
	most, groups, err := frequentStructure(in)
	if err != nil {
		return nil, "", err
	}
	n := len(in.Runs)
	if need := enough(task, n); most.count < need {
		return nil, fmt.Sprintf("the %d runs have %d different structures, the most frequent one %d times; contract.stability asks for %d", n, groups, most.count, need), nil
	}
	return most.nodes, "", nil
}

// enough is how many of n runs must have the golden's structure.
func enough(task *tasks.Definition, n int) int {
	return int(math.Ceil(task.Contract.Stability*float64(n) - 1e-9))
}

type structureCount struct {
	nodes []golden.Node
	count int
}

// frequentStructure counts the structures of the runs that gave JSON, without the places that the case leaves free. Of two that
// are as frequent the earlier one counts.
func frequentStructure(in *CaseEvidence) (most structureCount, groups int, err error) {
	var all []structureCount
	for _, a := range in.Runs {
		if !a.Completed() {
			continue
		}
		nodes, err := golden.Structure(a.Outcome.Output)
		if err != nil {
			return structureCount{}, 0, err //nolint:wrapcheck // says that it is not JSON
		}
		nodes = append([]golden.Node{}, in.Case.without(nodes)...)
		i := slices.IndexFunc(all, func(c structureCount) bool { return slices.Equal(c.nodes, nodes) })
		if i < 0 {
			all, i = append(all, structureCount{nodes: nodes}), len(all)
		}
		all[i].count++
	}
	for _, c := range all {
		if c.count > most.count {
			most = c
		}
	}
	return most, len(all), nil
}

// commonValue is the first of the most frequent values at the pointer that every run keeps.
func commonValue(mode golden.Mode, pointer string, runs []Answer) (json.RawMessage, bool) {
	type candidate struct {
		value json.RawMessage
		count int
	}
	var all []candidate
	for _, a := range runs {
		value, ok := golden.At(a.Outcome.Output, pointer)
		if !ok {
			return nil, false
		}
		kept := !slices.ContainsFunc(runs, func(other Answer) bool {
			return len(golden.Compare(mode, pointer, value, other.Outcome.Output)) > 0
		})
		if !kept {
			continue
		}
		i := slices.IndexFunc(all, func(c candidate) bool { return bytes.Equal(c.value, value) })
		if i < 0 {
			all, i = append(all, candidate{value: value}), len(all)
		}
		all[i].count++
	}
	var most candidate
	for _, c := range all {
		if c.count > most.count {
			most = c
		}
	}
	return most.value, most.count > 0
}

// jsonGolden has sorted keys, so that a golden that is written anew differs only where it differs.
func jsonGolden(path string, v any, wanted bool) (GoldenFile, error) {
	if !wanted {
		return GoldenFile{Path: path}, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return GoldenFile{}, err
	}
	return goldenFile(path, b.Bytes())
}

// goldenFile refuses what could not be loaded again.
func goldenFile(path string, content []byte) (GoldenFile, error) {
	if len(content) > MaxCaseBytes {
		return GoldenFile{}, fmt.Errorf("%s would be larger than %d bytes", path, MaxCaseBytes)
	}
	if strings.HasSuffix(path, goldenSuffix) {
		if err := canonical.Check(content); err != nil {
			return GoldenFile{}, fmt.Errorf("%s: %w", path, err)
		}
	}
	return GoldenFile{Path: path, Content: content}, nil
}

// With is the evidence beside other goldens: those of the suite, which must be of the same task version and have the same cases.
// It asks nobody.
func (ev *Evidence) With(s Suite) (*Evidence, error) {
	if s.Task.Digest != ev.Suite.Task.Digest || len(s.Cases) != len(ev.Cases) {
		return nil, errors.New("the task or its cases were changed meanwhile; run the contract again")
	}
	out := *ev
	out.Suite, out.Cases = s, slices.Clone(ev.Cases)
	for i := range out.Cases {
		in, one := &out.Cases[i], s.Cases[i]
		if one.Name != in.Case.Name || !bytes.Equal(one.Input, in.Case.Input) {
			return nil, fmt.Errorf("the case %q was changed meanwhile; run the contract again", in.Case.Name)
		}
		in.Case = one
		in.PromptChecks = slices.Clone(in.PromptChecks)
		for j, c := range in.PromptChecks {
			if c.Full() == report.CheckPrompt+"/golden" {
				in.PromptChecks[j] = checkPromptGolden(s, one, ev.Target, in.Prompt)
			}
		}
	}
	return &out, nil
}
