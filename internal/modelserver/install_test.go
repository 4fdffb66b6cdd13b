package modelserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// npm writes a program that stands in for npm.
func npm(t *testing.T, script string) (path string) {
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
	_, err := install(t.Context(), base, "node", npm(t, `mkdir node_modules; echo "no such registry" >&2; exit 7`))
	require.ErrorContains(t, err, "exit status 7\nno such registry")
	require.Empty(t, names(t, base), "half of it would be taken for all the next time")

	in, err := install(t.Context(), base, "node", npm(t, `test "$1" = ci && mkdir node_modules`))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{".npmrc", "left-out", "node_modules", "package-lock.json", "package.json", "server.mjs"}, names(t, in.folder))

	again, err := install(t.Context(), base, "node", npm(t, `exit 1`))
	require.NoError(t, err, "it asks npm no second time")
	require.Equal(t, in, again)
}

func TestInstallsAtTheSameTime(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "cache")
	// Each npm waits for the other one, so that both are in the middle of it.
	meet := t.TempDir()
	program := npm(t, `touch "`+meet+`/$$"; until [ "$(ls "`+meet+`" | wc -l)" = 2 ]; do :; done; mkdir node_modules`)
	var wait sync.WaitGroup
	var got [2]Installed
	var errs [2]error
	for i := range got {
		wait.Go(func() { got[i], errs[i] = install(t.Context(), base, "node", program) })
	}
	wait.Wait()
	require.Equal(t, [2]error{}, errs)
	require.Equal(t, got[0], got[1])
	require.Equal(t, []string{filepath.Base(got[0].folder)}, names(t, base))
}

// Every package comes from the registry that npm is set up for, in the one version that the file names.
func TestLockNamesNoRegistry(t *testing.T) {
	t.Parallel()
	raw, err := sources.ReadFile("server/package-lock.json")
	require.NoError(t, err)
	var lock struct {
		Packages map[string]struct {
			Version, Resolved, Integrity string
			Link                         bool
		}
	}
	require.NoError(t, json.Unmarshal(raw, &lock))
	require.Equal(t, "3.21.1", lock.Packages["node_modules/node-llama-cpp"].Version)
	for name, p := range lock.Packages {
		require.NotContains(t, p.Resolved, "://", name)
		if name != "" && !p.Link && !strings.HasSuffix(name, "/left-out") {
			require.NotEmpty(t, p.Integrity, name)
		}
	}
	require.Contains(t, lock.Packages, "node_modules/@node-llama-cpp/linux-x64", "llama.cpp comes as a package")
}
