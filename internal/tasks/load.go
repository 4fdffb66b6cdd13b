package tasks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// The files of a task's folder. Anything else in it (cases, goldens, cassettes, a README) is not part of the version.
const (
	FileTask         = "task.yaml"
	FileInputSchema  = "input.schema.json"
	FileOutputSchema = "output.schema.json"
	FileSystem       = "system.tmpl"
	FilePrompt       = "prompt.tmpl"
)

// MaxFileBytes bounds each file of a task.
const MaxFileBytes = 1 << 20

// Error says which file of a task breaks which rule.
type Error struct {
	File string // path inside of the file system that was loaded from
	Err  error
}

func (e *Error) Error() string { return e.File + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Load reads one task folder. Every schema and template is compiled, so that a definition which loads also runs. Errors
// are of type *Error, joined if there are more. A dir of "." leaves the folder's name unknown and unchecked.
func Load(fsys fs.FS, dir string) (*Definition, error) {
	var errs []error
	read := func(name string) []byte {
		b, err := readFile(fsys, path.Join(dir, name))
		if err != nil {
			errs = append(errs, &Error{File: path.Join(dir, name), Err: err})
		}
		return b
	}
	s := sources{
		inputSchema:  read(FileInputSchema),
		outputSchema: read(FileOutputSchema),
		system:       string(read(FileSystem)),
		prompt:       string(read(FilePrompt)),
	}
	yamlText := read(FileTask)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	f, err := parseFile(yamlText)
	if err != nil {
		return nil, &Error{File: path.Join(dir, FileTask), Err: err}
	}
	if base := path.Base(dir); base != "." && string(f.Name) != base {
		return nil, &Error{File: path.Join(dir, FileTask), Err: fmt.Errorf("name: is %q, but the folder is called %q", f.Name, base)}
	}
	s.file = f
	return s.compile(dir)
}

// LoadAll reads every task folder directly under the root of fsys, in order of name. Folders whose name begins with a dot
// or an underscore are passed over; any other folder without a task.yaml is an error, since a misspelt file would
// otherwise make its task disappear.
func LoadAll(fsys fs.FS) ([]*Definition, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("read the tasks folder: %w", err)
	}
	var (
		defs []*Definition
		errs []error
	)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") {
			continue
		}
		// Stat, since a folder may be mounted as a symbolic link.
		if info, err := fs.Stat(fsys, e.Name()); err != nil || !info.IsDir() {
			continue
		}
		d, err := Load(fsys, e.Name())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		defs = append(defs, d)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return defs, nil
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the file is missing: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > MaxFileBytes:
		return nil, fmt.Errorf("the file is larger than %d bytes", MaxFileBytes)
	case !utf8.Valid(b):
		return nil, errors.New("the file is not valid UTF-8")
	case strings.IndexByte(string(b), 0) >= 0:
		return nil, errors.New("the file holds a NUL byte, which databases cannot keep as text")
	}
	return b, nil
}
