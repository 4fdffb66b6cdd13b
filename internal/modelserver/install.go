package modelserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// sources are the server and what npm needs to install its packages.
//
//go:embed server/server.mjs server/package.json server/package-lock.json server/.npmrc server/left-out/package.json
var sources embed.FS

// Installed is a folder with the server and its packages.
type Installed struct {
	node   string
	folder string
}

// Install makes the server ready to start: its packages are fetched from npm's registry, in exactly the versions of
// package-lock.json, into the user's folder for caches. With the packages there already nothing is fetched. Processes that
// install at the same time do not disturb each other.
func Install(ctx context.Context) (Installed, error) {
	node, npm, err := FindNode(ctx)
	if err != nil {
		return Installed{}, err
	}
	base, err := os.UserCacheDir()
	if err != nil { // without a home
		base = os.TempDir()
	}
	return install(ctx, filepath.Join(base, "docket-modelserver"), node, npm)
}

func install(ctx context.Context, base, node, npm string) (Installed, error) {
	files, err := fs.Sub(sources, "server")
	if err != nil {
		return Installed{}, fmt.Errorf("model server: %w", err)
	}
	name, err := digest(files)
	if err != nil {
		return Installed{}, err
	}
	in := Installed{node: node, folder: filepath.Join(base, name)}
	if _, err := os.Stat(in.folder); err == nil {
		return in, nil
	}
	if err := os.MkdirAll(base, 0o750); err != nil {
		return Installed{}, fmt.Errorf("model server: %w", err)
	}
	// The folder gets its name when all is in it, so that one which is there is whole.
	building, err := os.MkdirTemp(base, "installing-")
	if err != nil {
		return Installed{}, fmt.Errorf("model server: %w", err)
	}
	defer func() { _ = os.RemoveAll(building) }()
	if err := os.CopyFS(building, files); err != nil {
		return Installed{}, fmt.Errorf("model server: %w", err)
	}
	cmd := exec.CommandContext(ctx, npm, "ci", "--omit=dev", "--no-update-notifier")
	cmd.Dir = building
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return Installed{}, fmt.Errorf("model server: npm ci: %w\n%s", err, &said)
	}
	if err := os.Rename(building, in.folder); err != nil {
		if _, there := os.Stat(in.folder); there != nil { // nobody else was faster
			return Installed{}, fmt.Errorf("model server: %w", err)
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
		return "", errors.Join(errors.New("model server: its files cannot be read"), err)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
