package cassette

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2/maybe"
	"go.yaml.in/yaml/v4"
	vcr "gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"
)

// maxFile bounds a cassette in bytes.
const maxFile = 128 << 20

// tape is a cassette's file: go-vcr's format with our description in front, which go-vcr passes over.
type tape struct {
	Docket       description        `yaml:"docket"`
	Version      int                `yaml:"version"`
	Interactions []*vcr.Interaction `yaml:"interactions"`
}

// parse reads a file. go-vcr's own reading would take a file that was cut off, or nearly anything else, for a cassette.
func parse(raw []byte) (*tape, error) {
	if len(raw) > maxFile {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxFile)
	}
	var t tape
	if err := yaml.Load(raw, &t, yaml.WithKnownFields(), yaml.WithUniqueKeys()); err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	switch {
	case t.Version != vcr.CassetteFormatVersion:
		return nil, fmt.Errorf("its version is %d and must be %d", t.Version, vcr.CassetteFormatVersion)
	case t.Docket.Task == "":
		return nil, errors.New("it does not say what it was recorded from")
	case len(t.Interactions) != t.Docket.Interactions:
		return nil, fmt.Errorf("%d interactions were recorded and %d are there", t.Docket.Interactions, len(t.Interactions))
	case slices.Contains(t.Interactions, nil):
		return nil, errors.New("an interaction is empty")
	case slices.ContainsFunc(t.Interactions, func(i *vcr.Interaction) bool { return i.Response.Duration <= 0 }):
		return nil, errors.New("an answer has no duration, which the check budget judges")
	}
	return &t, nil
}

// encode is go-vcr's marshal function. Interactions are put in the order of steps, since the one in which they ended is another
// each time. The hooks that take out what is secret have run by then; what they missed is an error here.
func (w *wire) encode(d description, v any) ([]byte, error) {
	c, ok := v.(*vcr.Cassette)
	if !ok {
		return nil, fmt.Errorf("not a cassette but %T", v)
	}
	t := tape{Docket: d, Version: c.Version, Interactions: slices.Clone(c.Interactions)}
	t.Docket.Interactions = len(t.Interactions)
	slices.SortStableFunc(t.Interactions, func(a, b *vcr.Interaction) int {
		x, y := a.Request.Headers.Get(stepHeader), b.Request.Headers.Get(stepHeader)
		return cmp.Or(cmp.Compare(number(x), number(y)), cmp.Compare(x, y))
	})
	for i, one := range t.Interactions {
		one.ID = i
		if w.leaks(one) {
			return nil, errors.New("the provider's key is in it still")
		}
	}
	raw, err := yaml.Dump(t, yaml.WithLineWidth(-1)) // texts stay in one piece, to be searched
	if err != nil {
		return nil, fmt.Errorf("write it as YAML: %w", err)
	}
	if w.holdsKey(string(raw)) {
		return nil, errors.New("the provider's key is in it still")
	}
	// A file that cannot be read again, or says something else then, would be found out when nobody can record any more.
	back, err := parse(append([]byte("---\n"), raw...))
	if err != nil {
		return nil, fmt.Errorf("it could not be read again: %w", err)
	}
	for i, one := range back.Interactions {
		if one.Request.Body != t.Interactions[i].Request.Body || one.Response.Body != t.Interactions[i].Response.Body {
			return nil, errors.New("a body would be another one when it is read again")
		}
	}
	return raw, nil
}

// number is that of a step "run 7", 0 of every other step.
func number(step string) int {
	rest, ok := strings.CutPrefix(step, "run ")
	n, err := strconv.Atoi(rest)
	if !ok || err != nil {
		return 0
	}
	return n
}

// disk is the file system that go-vcr sees: one file, as it was read, or to be written in one step.
type disk struct {
	raw  []byte
	file string
}

// ReadFile implements vcr.FS.
func (d disk) ReadFile(string) ([]byte, error) { return bytes.Clone(d.raw), nil }

// IsFileExists implements vcr.FS.
func (d disk) IsFileExists(string) bool { return d.raw != nil }

// WriteFile implements vcr.FS. Whoever reads the file sees the old one or the new one, also after a crash.
func (d disk) WriteFile(_ string, data []byte) error { return maybe.WriteFile(d.file, data, 0o644) }

// probe makes the folder of a file and sees whether it can be written there, before anything is paid for.
func probe(file string) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // beside the task's other files, to be committed
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
