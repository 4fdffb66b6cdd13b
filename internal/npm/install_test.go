package npm

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

var project = fstest.MapFS{
	"package.json": {Data: []byte(`{}`)}, "package-lock.json": {Data: []byte(`{}`)}, ".npmrc": {Data: []byte("fund=false\n")},
}

// standIn writes a program that stands in for npm.
func standIn(t *testing.T, script string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "npm")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return path
}

// names lists a folder.
func names(t *testing.T, folder string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestInstallIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "cache")
	_, err := install(t.Context(), base, project, "node", standIn(t, `mkdir node_modules; echo "no such registry" >&2; exit 7`))
	require.ErrorContains(t, err, "install cache: npm ci: exit status 7\nno such registry")
	require.Empty(t, names(t, base), "half of it would be taken for all the next time")

	in, err := install(t.Context(), base, project, "node", standIn(t, `test "$1" = ci && mkdir node_modules`))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{".npmrc", "node_modules", "package-lock.json", "package.json"}, names(t, in.Folder))

	again, err := install(t.Context(), base, project, "node", standIn(t, `exit 1`))
	require.NoError(t, err, "it asks npm no second time")
	require.Equal(t, in, again)

	other := fstest.MapFS{"package-lock.json": {Data: []byte(`{"other": 1}`)}}
	_, err = install(t.Context(), base, other, "node", standIn(t, `exit 1`))
	require.Error(t, err, "other files are another folder")
}

func TestInstallsAtTheSameTime(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "cache")
	// Each npm waits for the other one, so that both are in the middle of it.
	meet := t.TempDir()
	program := standIn(t, `touch "`+meet+`/$$"; until [ "$(ls "`+meet+`" | wc -l)" = 2 ]; do :; done; mkdir node_modules`)
	var wait sync.WaitGroup
	var got [2]Installed
	var errs [2]error
	for i := range got {
		wait.Go(func() { got[i], errs[i] = install(t.Context(), base, project, "node", program) })
	}
	wait.Wait()
	require.Equal(t, [2]error{}, errs)
	require.Equal(t, got[0], got[1])
	require.Equal(t, []string{filepath.Base(got[0].Folder)}, names(t, base))
}
