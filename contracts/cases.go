package contracts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/docket-gateway/docket/contracts/golden"
	"github.com/docket-gateway/docket/contracts/meaning"
	"github.com/docket-gateway/docket/internal/canonical"
	"github.com/docket-gateway/docket/internal/tasks"
)

// MaxCaseBytes bounds a case file.
const MaxCaseBytes = 1 << 20

// casesFolder is where a task's cases lie, each in a file of its own.
const casesFolder = "cases"

// Case is one example of a task's use and what must hold for its output.
type Case struct {
	Name    string                 // the file's name without .json
	Input   json.RawMessage        // canonical form
	Assert  []meaning.Assertion    // CEL over input and output
	Compare map[string]golden.Mode // by JSON pointer into the output
	Goldens Goldens

	written caseFile
}

// Suite is a task version with the cases that prove it.
type Suite struct {
	Task  *tasks.Definition
	Cases []Case // in order of name
	Dir   string // the task's folder on disk, for what is written beside the cases; empty: it is built in

	own   string // task version of the folder that the cases and their goldens come from
	files fs.FS  // the task's folder
}

// Files is the folder of the suite's task, wherever that lies, to read what was recorded beside the cases.
func (s Suite) Files() fs.FS { return s.files }

// LoadSuites loads every task folder directly under the root of fsys with its cases, in order of name.
func LoadSuites(fsys fs.FS) ([]Suite, error) {
	defs, err := tasks.LoadAll(fsys)
	if err != nil {
		return nil, err
	}
	var (
		suites []Suite
		errs   []error
	)
	for _, d := range defs {
		s, err := LoadSuite(fsys, d.Name, d)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		suites = append(suites, s)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return suites, nil
}

// LoadSuite reads the cases in the task folder dir for the version task, which need not be the folder's own. A suite
// without cases is an error: it would pass without having shown anything. Errors are *tasks.Error, joined.
func LoadSuite(fsys fs.FS, dir string, task *tasks.Definition) (Suite, error) {
	folder := path.Join(dir, casesFolder)
	entries, err := fs.ReadDir(fsys, folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Suite{}, &tasks.Error{File: folder, Err: err}
	}
	files, err := fs.Sub(fsys, dir)
	if err != nil {
		return Suite{}, &tasks.Error{File: dir, Err: err}
	}
	s := Suite{Task: task, own: task.Digest, files: files}
	var errs []error
	var names []string
	for _, e := range entries {
		name, isCase := strings.CutSuffix(e.Name(), ".json")
		if !isCase || strings.HasSuffix(e.Name(), goldenSuffix) || e.IsDir() {
			continue
		}
		c, err := loadCase(fsys, path.Join(folder, e.Name()), name)
		if err == nil {
			err = c.checkInput(task)
		}
		if err != nil {
			errs = append(errs, &tasks.Error{File: path.Join(folder, e.Name()), Err: err})
			continue
		}
		s.Cases = append(s.Cases, c)
		names = append(names, name)
	}
	if len(errs) > 0 {
		return Suite{}, errors.Join(errs...)
	}
	if len(s.Cases) == 0 {
		return Suite{}, &tasks.Error{File: folder, Err: errors.New("there is no case; a contract needs at least one")}
	}
	slices.SortFunc(s.Cases, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	goldens, err := loadGoldens(fsys, dir, names)
	if err != nil {
		return Suite{}, err
	}
	for i := range s.Cases {
		s.Cases[i].Goldens = goldens[s.Cases[i].Name]
	}
	return s, nil
}

// For returns the suite's cases for another version of its task, as open jobs may hold one. It fails if an input breaks
// that version's input schema.
func (s Suite) For(task *tasks.Definition) (Suite, error) {
	var errs []error
	for _, c := range s.Cases {
		if err := c.checkInput(task); err != nil {
			errs = append(errs, fmt.Errorf("case %q does not fit the version %s of the task %s: %w", c.Name, task.Digest, task.Name, err))
		}
	}
	s.Task = task
	return s, errors.Join(errs...)
}

// caseFile is a case as it is written.
type caseFile struct {
	Input   json.RawMessage   `json:"input"`
	Assert  []string          `json:"assert"`
	Compare map[string]string `json:"compare"`
}

func loadCase(fsys fs.FS, file, name string) (Case, error) {
	raw, err := readBounded(fsys, file)
	if err != nil {
		return Case{}, err
	}
	// Repeated keys are found here, which the decoder below would pass over.
	if err := canonical.Check(raw); err != nil {
		var syntax *canonical.SyntaxError
		if errors.As(err, &syntax) {
			return Case{}, fmt.Errorf("at byte %d (%q): %w", syntax.Offset, syntax.Pointer, err)
		}
		return Case{}, err
	}
	var cf caseFile
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&cf); err != nil {
		return Case{}, err
	}
	if cf.Input == nil {
		return Case{}, errors.New("input: is missing")
	}
	// Left out and empty are the same case.
	if cf.Assert == nil {
		cf.Assert = []string{}
	}
	if cf.Compare == nil {
		cf.Compare = map[string]string{}
	}
	c := Case{Name: name, Compare: map[string]golden.Mode{}, written: cf}
	for i, expr := range cf.Assert {
		if strings.TrimSpace(expr) == "" {
			return Case{}, fmt.Errorf("assert[%d]: is empty", i)
		}
		a, err := meaning.Compile(expr)
		if err != nil {
			return Case{}, fmt.Errorf("assert[%d]: %w", i, err)
		}
		c.Assert = append(c.Assert, a)
	}
	for pointer, how := range cf.Compare {
		m, err := golden.ParseMode(pointer, how)
		if err != nil {
			return Case{}, fmt.Errorf("compare[%q]: %w", pointer, err)
		}
		c.Compare[pointer] = m
	}
	input, err := canonical.Canonicalize(cf.Input)
	if err != nil {
		return Case{}, fmt.Errorf("input: %w", err)
	}
	c.Input, c.written.Input = input, input
	return c, nil
}

func readBounded(fsys fs.FS, file string) ([]byte, error) {
	f, err := fsys.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, MaxCaseBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > MaxCaseBytes {
		return nil, fmt.Errorf("the file is larger than %d bytes", MaxCaseBytes)
	}
	return raw, nil
}

// checkInput refuses a case that no job could have: it would prove nothing.
func (c Case) checkInput(task *tasks.Definition) error {
	issues := task.InputSchema.Validate(c.Input)
	if len(issues) == 0 {
		return nil
	}
	errs := make([]error, len(issues))
	for i, is := range issues {
		errs[i] = fmt.Errorf("/input%s: %s (%s)", is.Pointer, is.Message, is.Rule)
	}
	return errors.Join(errs...)
}

// Digest is "sha256:" and 64 hex digits over the case alone, without what is recorded for it.
func (c Case) Digest() (string, error) {
	return digest(c.digestible(nil))
}

// digestibleCase is what digests are made of.
type digestibleCase struct {
	Name string `json:"name"`
	caseFile
	Goldens json.RawMessage `json:"goldens"`
}

func (c Case) digestible(goldens json.RawMessage) digestibleCase {
	return digestibleCase{c.Name, c.written, goldens}
}

// CasesDigest is "sha256:" and 64 hex digits over all cases and over what is recorded for them at the target.
func (s Suite) CasesDigest(target string) (string, error) {
	list := make([]digestibleCase, len(s.Cases))
	for i, c := range s.Cases {
		goldens, err := c.Goldens.digestible(target)
		if err != nil {
			return "", err
		}
		list[i] = c.digestible(goldens)
	}
	return digest(list)
}

func digest(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	canon, err := canonical.Canonicalize(raw)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canon)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
