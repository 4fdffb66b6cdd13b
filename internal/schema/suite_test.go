package schema

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// needsRemotes are the suite's groups that refer to documents on the suite's server. A schema of ours is one document,
// so Compile refuses them; with the documents at hand they are tested all the same.
var needsRemotes = []string{
	"dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first",
	"dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first",
	"dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor",
	"dynamicRef: strict-tree schema, guards against misspelled properties",
	"dynamicRef: tests for implementation dynamic anchor and reference link",
	"refRemote: $ref to $ref finds detached $anchor",
	"refRemote: Location-independent identifier in remote ref",
	"refRemote: anchor within remote ref",
	"refRemote: base URI change",
	"refRemote: base URI change - change folder",
	"refRemote: base URI change - change folder in subschema",
	"refRemote: fragment within remote ref",
	"refRemote: ref within remote ref",
	"refRemote: remote HTTP ref with different $id",
	"refRemote: remote HTTP ref with different URN $id",
	"refRemote: remote HTTP ref with nested absolute ref",
	"refRemote: remote ref",
	"refRemote: remote ref with ref to defs",
	"refRemote: retrieved nested refs resolve relative to their URI not $id",
	"refRemote: root ref in remote ref",
	"vocabulary: ignore unrecognized optional vocabulary",
	"vocabulary: schema that uses custom metaschema with with no validation vocabulary",
}

// refused are groups whose schema does not compile on purpose: the library would let everything pass an empty enum.
var refused = []string{"enum: empty enum"}

// knownFailures are the tests that fail because the library's scope for $dynamicRef ignores which resource a schema
// belongs to. The list is exact: a test that starts to pass must leave it.
var knownFailures = []string{
	"dynamicRef: $dynamicRef skips over intermediate resources - direct reference: integer property passes",
	"dynamicRef: $dynamicRef skips over intermediate resources - direct reference: string property fails",
}

// isFormat says whether a test expects that format is only a hint. Here it is a rule, so each of these is refused.
func isFormat(test string) bool {
	return strings.HasPrefix(test, "format: ") && strings.HasSuffix(test, " string is only an annotation by default")
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

// suiteGroups returns the official suite's required tests for draft 2020-12 by file and description.
func suiteGroups(t testing.TB) map[string]suiteGroup {
	files, err := filepath.Glob("testdata/suite/*.json")
	require.NoError(t, err)
	require.Len(t, files, 46)
	all := map[string]suiteGroup{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var groups []suiteGroup
		require.NoError(t, json.Unmarshal(raw, &groups))
		for _, group := range groups {
			name := strings.TrimSuffix(filepath.Base(file), ".json") + ": " + group.Description
			require.NotContains(t, all, name)
			all[name] = group
		}
	}
	return all
}

// loadRemote stands for the suite's server.
func loadRemote(url string) (io.ReadCloser, error) {
	path, ok := strings.CutPrefix(url, "http://localhost:1234/draft2020-12/")
	if !ok {
		return nil, errors.New("not a document of the suite")
	}
	return os.Open(filepath.Join("testdata/suite/remotes", path))
}

func TestKeepsTheOfficialSuite(t *testing.T) {
	t.Parallel()

	var failures, formats, remotes, empty []string
	for name, group := range suiteGroups(t) {
		s, err := Compile("suite", group.Schema)
		if err != nil && strings.Contains(err.Error(), "an empty enum allows no value") {
			empty = append(empty, name)
			continue
		}
		if err != nil {
			require.ErrorContains(t, err, "nothing is loaded", name)
			remotes = append(remotes, name)
			s, err = newSchema("suite", group.Schema, loadRemote)
			require.NoError(t, err, name)
		}
		for _, test := range group.Tests {
			full := name + ": " + test.Description
			switch valid := len(s.Validate(test.Data)) == 0; {
			case valid == test.Valid:
			case isFormat(full):
				formats = append(formats, full)
			default:
				failures = append(failures, full)
			}
		}
	}
	require.ElementsMatch(t, needsRemotes, remotes)
	require.ElementsMatch(t, refused, empty)
	require.Len(t, formats, 17) // all of the suite's formats but those for internationalised names, which the library lacks
	require.ElementsMatch(t, knownFailures, failures)
}
