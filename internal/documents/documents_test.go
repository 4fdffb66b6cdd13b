package documents_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/documents"
)

// hashOfViewer is the SHA-256 of the document.
const (
	viewer       = "{ viewer { subject } }"
	hashOfViewer = "f38dc677810a6ebe0c65fe68116919b963d86aac1bb7090ed4809385477b2ef7"
)

func TestReadsEachFormat(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"graphql-codegen and Relay": `{"` + hashOfViewer + `": "{ viewer { subject } }", "b1946ac92492d2347c6235b4d2611184": "{ jobs { totalCount } }"}`,
		"with the prefix":           `{"sha256:` + hashOfViewer + `": "{ viewer { subject } }"}`,
		"Apollo": `{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [
			{"id": "` + hashOfViewer + `", "name": "V", "type": "query", "body": "{ viewer { subject } }"}]}`,
	} {
		s, err := documents.Parse([]byte(text))
		require.NoError(t, err, name)
		for _, id := range []string{hashOfViewer, "sha256:" + hashOfViewer} {
			document, ok := s.Lookup(id)
			require.True(t, ok, name)
			require.Equal(t, viewer, document)
		}
		require.True(t, s.Trusts(viewer))
		require.False(t, s.Trusts(viewer+" "))
		_, ok := s.Lookup("other")
		require.False(t, ok)
	}
	s, err := documents.Parse([]byte(`{"a": "{ viewer { subject } }"}`))
	require.NoError(t, err)
	_, ok := s.Lookup("sha256:a")
	require.False(t, ok, "an id of another kind is not SHA-256's")
	require.Equal(t, []string{"a"}, s.IDs())
}

func TestRefusesManifestsThatSayTwoThings(t *testing.T) {
	t.Parallel()
	for text, rule := range map[string]string{
		``:                     "is empty",
		`[]`:                   "must be a JSON object",
		`{"a": 1}`:             "must be a JSON object",
		`{}`:                   "no document",
		`{"a": ""}`:            "empty",
		`{"": "{ a }"}`:        "empty",
		`{"a": "x", "a": "x"}`: "repeated",
		`{"sha256:ab": "{ viewer { subject } }"}`:                                                                       "not the hash",
		`{"format": "apollo-persisted-query-manifest", "version": 2, "operations": []}`:                                 "version 2",
		`{"format": "apollo-persisted-query-manifest", "version": 1, "operations": []}`:                                 "no document",
		`{"format": "apollo-persisted-query-manifest", "version": 1, "operations": [{"id":"a","body":"x"},{"id":"a"}]}`: "twice",
	} {
		_, err := documents.Parse([]byte(text))
		require.ErrorContains(t, err, rule, text)
	}
}

func TestNamesTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "documents.json")
	_, err := documents.Load(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte(`{}`), 0o600))
	_, err = documents.Load(path)
	require.ErrorContains(t, err, "documents.json: holds no document")
}
