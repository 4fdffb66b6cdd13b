package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, root, path, content string) {
	t.Helper()
	path = filepath.Join(root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestChanges(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "same.go", "same")
	write(t, root, "ent/changed.go", "before")
	write(t, root, "ent/removed.go", "gone")
	before, err := snapshot(root)
	require.NoError(t, err)
	require.Empty(t, before.changes(before))

	write(t, root, "same.go", "same") // written again, as generators do
	write(t, root, "ent/changed.go", "after")
	write(t, root, "ent/added.go", "new")
	require.NoError(t, os.Remove(filepath.Join(root, "ent/removed.go")))
	for _, foreign := range []string{".git/index", "web/node_modules/a.js", ".cache/a", "docket.db-wal"} {
		write(t, root, foreign, "changes on its own")
	}
	after, err := snapshot(root)
	require.NoError(t, err)

	require.Equal(t, []string{
		filepath.Join(root, "ent/added.go") + " (new)",
		filepath.Join(root, "ent/changed.go"),
		filepath.Join(root, "ent/removed.go") + " (removed)",
	}, before.changes(after))
}

func TestUnformatted(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "good.go", "package a\n\nvar x = 1\n")
	write(t, root, "bad.go", "package a\nvar  x = 1\n")
	write(t, root, "note.txt", "not  Go")
	write(t, root, "node_modules/bad.go", "package a\nvar  x = 1\n")
	wrong, err := unformatted(root)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(root, "bad.go")}, wrong)

	write(t, root, "broken.go", "package")
	_, err = unformatted(root)
	require.ErrorContains(t, err, "broken.go")
}
