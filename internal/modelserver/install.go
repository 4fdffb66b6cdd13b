package modelserver

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/docket-gateway/docket/internal/npm"
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
// package-lock.json, into the user's folder for caches, unless they are there. Errors are npm.Install's.
func Install(ctx context.Context) (Installed, error) {
	files, err := fs.Sub(sources, "server")
	if err != nil {
		return Installed{}, fmt.Errorf("model server: %w", err)
	}
	in, err := npm.Install(ctx, "docket-modelserver", files)
	if err != nil {
		return Installed{}, fmt.Errorf("model server: %w", err)
	}
	return Installed{node: in.Node, folder: in.Folder}, nil
}
