package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/google/renameio/v2/maybe"

	"github.com/docket-gateway/docket/contracts"
)

func updatable(picked []selection) error {
	for _, p := range picked {
		if p.suite.Dir == "" {
			return fmt.Errorf("the task %q is built in, so its goldens cannot be written; put its folder on disk and name it under tasks", p.suite.Task.Name)
		}
	}
	return nil
}

// update writes the goldens of every run that came to its end, judges the runs again beside them and records that. The primary's
// come first: the others are judged by what it wrote.
func (r *run) update(ctx context.Context, c *collected) {
	if ctx.Err() != nil { // half of the goldens would be of today
		for i := range c.list {
			c.list[i].err, c.list[i].done = fmt.Errorf("%w: %w", contracts.ErrInterrupted, context.Cause(ctx)), false
		}
		return
	}
	order := make([]*outcome, 0, len(c.list))
	for i := range c.list {
		if c.list[i].done {
			order = append(order, &c.list[i])
		}
	}
	slices.SortStableFunc(order, func(a, b *outcome) int { return rank(a) - rank(b) })
	for _, one := range order {
		refused, err := r.write(one)
		one.err = errors.Join(one.err, err)
		c.refused = c.refused || refused
	}
	for _, one := range order {
		if err := rejudge(ctx, one); err != nil {
			one.err, one.done = errors.Join(one.err, err), false
			continue
		}
		one.err = errors.Join(one.err, r.recorder.Record(ctx, one.result))
	}
}

func rank(o *outcome) int {
	if o.target == o.suite.Task.Target {
		return 0
	}
	return 1
}

func (r *run) write(one *outcome) (refused bool, err error) {
	u, err := contracts.NewUpdate(one.evidence, one.result)
	if err != nil {
		return false, err //nolint:wrapcheck // says what is wrong with it
	}
	for _, no := range u.Refused {
		r.progress.say("%s at %s: no golden is written for the %s", one.suite.Task.Name, one.target, no)
	}
	for _, f := range u.Files {
		diff, err := WriteGolden(one.suite.Dir, f)
		if err != nil {
			return len(u.Refused) > 0, err
		}
		if diff != "" {
			r.progress.text(diff)
		}
	}
	return len(u.Refused) > 0, nil
}

// rejudge loads the suite anew.
func rejudge(ctx context.Context, one *outcome) error {
	dir, name := filepath.Split(filepath.Clean(one.suite.Dir))
	if dir == "" {
		dir = "."
	}
	s, err := contracts.LoadSuite(os.DirFS(dir), name, one.suite.Task)
	if err != nil {
		return fmt.Errorf("load what was written: %w", err)
	}
	s.Dir = one.suite.Dir
	ev, err := one.evidence.With(s)
	if err != nil {
		return err //nolint:wrapcheck // says what to do
	}
	one.suite, one.evidence = s, ev
	one.result, err = contracts.Judge(ctx, ev)
	return err //nolint:wrapcheck // names the case
}

// WriteGolden brings the file below the task's folder to what it is to be, at once and as a whole, and returns what that changes as
// a diff, "" for nothing: the file is not touched then.
func WriteGolden(dir string, f contracts.GoldenFile) (diff string, err error) {
	path := filepath.Join(dir, filepath.FromSlash(f.Path))
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if f.Content == nil {
			return "", nil
		}
	case err != nil:
		return "", fmt.Errorf("read the golden of before: %w", err)
	case f.Content == nil:
		if err := os.Remove(path); err != nil {
			return "", fmt.Errorf("remove a golden that nothing is compared with: %w", err)
		}
		return smallDiff(path, old, nil), nil
	case bytes.Equal(old, f.Content):
		return "", nil
	}
	// Nobody ever reads half of it.
	if err := maybe.WriteFile(path, f.Content, 0o644); err != nil {
		return "", fmt.Errorf("write a golden: %w", err)
	}
	return smallDiff(path, old, f.Content), nil
}

// maxDiffLines keeps a new prompt from filling the screen.
const maxDiffLines = 40

func smallDiff(path string, before, after []byte) string {
	from, to := path, path
	if before == nil {
		from = "/dev/null"
	}
	if after == nil {
		to = "/dev/null"
	}
	lines := strings.SplitAfter(udiff.Unified(from, to, string(before), string(after)), "\n")
	if len(lines) > maxDiffLines {
		more := len(lines) - maxDiffLines
		lines = append(lines[:maxDiffLines:maxDiffLines], fmt.Sprintf("… and %d more lines\n", more))
	}
	return strings.Join(lines, "")
}
