// Package npm installs packages of npm's registry for the tests, in exactly the versions of a committed package-lock.json.
//
// It imports nothing of this module and is imported by tests and by internal/check only.
package npm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Installed is a folder with files and their packages.
type Installed struct {
	Node   string // the program
	Folder string // has the files and node_modules; shared, so nobody writes into it
}

// Install copies files, among them package.json and package-lock.json, into the user's folder for caches, under name, and
// fetches their packages. With the packages there already nothing is fetched. Processes that install at the same time do not
// disturb each other. The error wraps ErrNotInstalled where Node.js or npm is missing.
func Install(ctx context.Context, name string, files fs.FS) (Installed, error) {
	node, npm, err := Find(ctx)
	if err != nil {
		return Installed{}, err
	}
	base, err := os.UserCacheDir()
	if err != nil { // without a home
		base = os.TempDir()
	}
	return install(ctx, filepath.Join(base, name), files, node, npm)
}

func install(ctx context.Context, base string, files fs.FS, node, npm string) (_ Installed, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("install %s: %w", filepath.Base(base), err)
		}
	}()
	name, err := digest(files)
	if err != nil {
		return Installed{}, err
	}
	in := Installed{Node: node, Folder: filepath.Join(base, name)}
	if _, err := os.Stat(in.Folder); err == nil {
		return in, nil
	}
	if err := os.MkdirAll(base, 0o750); err != nil {
		return Installed{}, err
	}
	// The folder gets its name when all is in it, so that one which is there is whole.
	building, err := os.MkdirTemp(base, "installing-")
	if err != nil {
		return Installed{}, err
	}
	defer func() { _ = os.RemoveAll(building) }()
	if err := os.CopyFS(building, files); err != nil {
		return Installed{}, err
	}
	cmd := exec.CommandContext(ctx, npm, "ci", "--no-update-notifier")
	cmd.Dir = building
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return Installed{}, fmt.Errorf("npm ci: %w\n%s", err, &said)
	}
	if err := os.Rename(building, in.Folder); err != nil {
		if _, there := os.Stat(in.Folder); there != nil { // nobody else was faster
			return Installed{}, err
		}
	}
	return in, nil
}

// digest names the folder: by all that is in it, and the machine that the packages are for.
func digest(files fs.FS) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s/%s\n", runtime.GOOS, runtime.GOARCH)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		_, _ = fmt.Fprintf(h, "%s %d\n", path, len(content))
		_, _ = h.Write(content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("its files cannot be read: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
