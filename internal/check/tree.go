package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tree is the state of a folder's files: digest by path.
type tree map[string][sha256.Size]byte

// walk calls visit for every file that is part of the project.
func walk(root string, visit func(path string) error) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "node_modules", ".cache"}, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		// A running gateway writes its database; .git is a file in a worktree.
		if !entry.Type().IsRegular() || entry.Name() == ".git" || strings.HasPrefix(entry.Name(), "docket.db") {
			return nil
		}
		return visit(path)
	})
}

func snapshot(root string) (tree, error) {
	files := tree{}
	err := walk(root, func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files[path] = sha256.Sum256(content)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the source tree: %w", err)
	}
	return files, nil
}

// changes lists what is different in after, by path.
func (t tree) changes(after tree) []string {
	var changes []string
	for path, digest := range after {
		was, ok := t[path]
		switch {
		case !ok:
			changes = append(changes, path+" (new)")
		case was != digest:
			changes = append(changes, path)
		}
	}
	for path := range t {
		if _, ok := after[path]; !ok {
			changes = append(changes, path+" (removed)")
		}
	}
	slices.Sort(changes)
	return changes
}

// unformatted lists the Go files that gofmt would change.
func unformatted(root string) ([]string, error) {
	var wrong []string
	err := walk(root, func(path string) error {
		if filepath.Ext(path) != ".go" {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		formatted, err := format.Source(content)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !bytes.Equal(content, formatted) {
			wrong = append(wrong, path)
		}
		return nil
	})
	return wrong, err
}
