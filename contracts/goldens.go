package contracts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/docket-gateway/docket/contracts/golden"
	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/docket-gateway/docket/internal/tasks"
)

// Suffixes of the files beside the cases that hold what was recorded for them.
const (
	goldenSuffix = ".golden.json"
	promptSuffix = ".prompt.golden"
)

// Goldens is what was recorded for one case.
type Goldens struct {
	Shared  *SharedGolden            // nil: none was written
	Targets map[string]*TargetGolden // by target
}

// SharedGolden is what every target must keep. It is written from the task's primary.
type SharedGolden struct {
	Structure []golden.Node              `json:"structure"`
	Values    map[string]json.RawMessage `json:"values,omitempty"` // of the pointers that are compared by subset or tolerance
}

// TargetGolden is what belongs to one target.
type TargetGolden struct {
	Values map[string]json.RawMessage `json:"values,omitempty"` // of the pointers that are compared by exact
	Prompt *string                    `json:"-"`                // as RenderedPrompt has it; in a file of its own, to be read
}

// SharedGoldenFile and the two below are paths inside of a task's folder.
func SharedGoldenFile(name string) string { return path.Join(casesFolder, name+goldenSuffix) }

// TargetGoldenFile holds the values of a target.
func TargetGoldenFile(name, target string) string {
	return path.Join(casesFolder, name+"."+FileTarget(target)+goldenSuffix)
}

// PromptGoldenFile holds the prompt of a target.
func PromptGoldenFile(name, target string) string {
	return path.Join(casesFolder, name+"."+FileTarget(target)+promptSuffix)
}

// FileTarget is a target as part of a file's name: provider@model, with whatever a file's name may not have escaped as in a URL.
func FileTarget(target string) string {
	provider, model, _ := strings.Cut(target, "/")
	return provider + "@" + url.QueryEscape(model)
}

func targetOf(name string) (string, bool) {
	provider, escaped, ok := strings.Cut(name, "@")
	model, err := url.QueryUnescape(escaped)
	if !ok || err != nil || provider == "" || model == "" || FileTarget(provider+"/"+model) != name {
		return "", false
	}
	return provider + "/" + model, true
}

// RenderedPrompt is a prompt as its golden file has it.
func RenderedPrompt(p tasks.Prompt) string {
	return "=== system\n" + p.System + "\n=== user\n" + p.User + "\n"
}

// loadGoldens reads the goldens of the cases with these names. A file that belongs to no case is an error: a renamed case would
// leave its golden behind unseen.
func loadGoldens(fsys fs.FS, dir string, names []string) (map[string]Goldens, error) {
	folder := path.Join(dir, casesFolder)
	entries, err := fs.ReadDir(fsys, folder)
	if err != nil {
		return nil, &tasks.Error{File: folder, Err: err}
	}
	out := map[string]Goldens{}
	var errs []error
	for _, e := range entries {
		rest, isPrompt := strings.CutSuffix(e.Name(), promptSuffix)
		if !isPrompt {
			var isGolden bool
			if rest, isGolden = strings.CutSuffix(e.Name(), goldenSuffix); !isGolden {
				continue
			}
		}
		file := path.Join(folder, e.Name())
		if err := readGolden(fsys, file, rest, isPrompt, names, out); err != nil {
			errs = append(errs, &tasks.Error{File: file, Err: err})
		}
	}
	return out, errors.Join(errs...)
}

func readGolden(fsys fs.FS, file, rest string, isPrompt bool, names []string, out map[string]Goldens) error {
	raw, err := readBounded(fsys, file)
	if err != nil {
		return err
	}
	name, target := rest, ""
	if !slices.Contains(names, rest) || isPrompt {
		ok := false
		// A case's name may have dots, and so may a target: the longest name is meant.
		longest := slices.SortedFunc(slices.Values(names), func(a, b string) int { return len(b) - len(a) })
		for _, n := range longest {
			after, found := strings.CutPrefix(rest, n+".")
			if !found {
				continue
			}
			if target, ok = targetOf(after); ok {
				name = n
				break
			}
		}
		if !ok {
			return errors.New("the golden belongs to no case")
		}
	}
	g := out[name]
	if g.Targets == nil {
		g.Targets = map[string]*TargetGolden{}
	}
	defer func() { out[name] = g }()
	if target == "" {
		g.Shared = &SharedGolden{}
		return decodeGolden(raw, g.Shared)
	}
	t := g.Targets[target]
	if t == nil {
		t = &TargetGolden{}
		g.Targets[target] = t
	}
	if isPrompt {
		text := string(raw)
		t.Prompt = &text
		return nil
	}
	return decodeGolden(raw, t)
}

func decodeGolden(raw []byte, into any) error {
	if err := canonical.Check(raw); err != nil {
		return err //nolint:wrapcheck // the caller names the file
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// digestible is what the digest of a suite at a target takes of a case's goldens.
func (g Goldens) digestible(target string) (json.RawMessage, error) {
	t := g.Targets[target]
	if t == nil {
		t = &TargetGolden{}
	}
	raw, err := json.Marshal(struct {
		Shared *SharedGolden              `json:"shared"`
		Values map[string]json.RawMessage `json:"values"`
		Prompt *string                    `json:"prompt"`
	}{g.Shared, t.Values, t.Prompt})
	if err != nil {
		return nil, fmt.Errorf("goldens: %w", err)
	}
	return raw, nil
}

// pointers lists those that the case compares in one of the ways, in order.
func (c Case) pointers(kinds ...golden.Kind) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.Compare)), func(p string) bool {
		return !slices.Contains(kinds, c.Compare[p].Kind)
	})
}
