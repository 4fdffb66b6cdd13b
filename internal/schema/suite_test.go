//go:build jsonschemasuite

// The official suite is not part of this repository:
//
//	go test -tags jsonschemasuite ./internal/schema -schema.suite FOLDER
//
// FOLDER is a checkout of https://github.com/json-schema-org/JSON-Schema-Test-Suite.

package schema

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var suiteFolder = flag.String("schema.suite", "", "folder of the official JSON-Schema-Test-Suite")

// The suite has at least so many tests for draft 2020-12. Fewer mean that files are missing.
const minSuiteTests = 2200

// exception is one test of the suite that does not end as the suite says.
type exception struct {
	File   string `json:"file"`
	Group  string `json:"group"`
	Test   string `json:"test"`
	Reason string `json:"reason"`
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// compileFor reads a schema as a task's is read. Formats are rules for the suite's tests of formats, and hints in all
// others, as the draft has it by default. Documents of the suite's server are at hand here; a task's schema that refers to
// one is refused.
func compileFor(t *testing.T, file string, raw json.RawMessage, refersOut *[]string) (*Schema, error) {
	var options []Option
	if !strings.HasPrefix(file, "optional/format/") && file != "optional/format-assertion.json" {
		options = append(options, AnnotateFormats())
	}
	s, err := Compile("suite", raw, options...)
	if err == nil || !strings.Contains(err.Error(), "nothing is loaded") {
		return s, err
	}
	*refersOut = append(*refersOut, file)
	require.Regexp(t, `at "[^"]+": it refers to "[^"]+", which is outside of it`, err.Error(), "a refusal names the place")
	return newSchema("suite", raw, func(url string) (io.ReadCloser, error) {
		path, ok := strings.CutPrefix(url, "http://localhost:1234/")
		if !ok {
			return nil, errors.New("not a document of the suite")
		}
		return os.Open(filepath.Join(*suiteFolder, "remotes", filepath.FromSlash(path)))
	}, options...)
}

func TestOfficialSuite(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, *suiteFolder, "say where the suite is: -schema.suite FOLDER")
	raw, err := os.ReadFile("testdata/suite-exceptions.json")
	require.NoError(t, err)
	var known []exception
	require.NoError(t, json.Unmarshal(raw, &known))
	reasons := map[exception]string{}
	for _, e := range known {
		require.NotEmpty(t, e.Reason, e)
		reason := e.Reason
		e.Reason = ""
		require.NotContains(t, reasons, e)
		reasons[e] = reason
	}

	root := filepath.Join(*suiteFolder, "tests", "draft2020-12")
	tests, required := 0, map[string]bool{}
	var refersOut []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		file := filepath.ToSlash(name)
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var groups []suiteGroup
		require.NoError(t, json.Unmarshal(raw, &groups), file)
		for _, group := range groups {
			s, err := compileFor(t, file, group.Schema, &refersOut)
			for _, test := range group.Tests {
				tests++
				ended := err == nil && (len(s.Validate(test.Data)) == 0) == test.Valid
				e := exception{File: file, Group: group.Description, Test: test.Description}
				_, excepted := reasons[e]
				delete(reasons, e)
				if excepted && !strings.HasPrefix(file, "optional/") {
					required[file+": "+group.Description] = true
				}
				switch {
				case ended && excepted:
					t.Errorf("an exception passes, take it out: %+v", e)
				case !ended && !excepted:
					t.Errorf("%+v: want valid %t (%v)", e, test.Valid, err)
				}
			}
		}
		return nil
	}))
	require.GreaterOrEqual(t, tests, minSuiteTests)
	require.Empty(t, reasons, "exceptions that are not in the suite")
	require.Len(t, required, 2, "exceptions among the required tests")
	slices.Sort(refersOut)
	require.Equal(t, []string{"dynamicRef.json", "refRemote.json", "vocabulary.json"}, slices.DeleteFunc(slices.Compact(refersOut), func(file string) bool {
		return strings.HasPrefix(file, "optional/")
	}))
	t.Logf("%d tests, %d exceptions", tests, len(known))
}
