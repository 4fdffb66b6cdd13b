// Package webclients runs web clients of other people, Docket's own TypeScript client and the audits of GraphQL over HTTP
// against a running gateway, in Node.js. The programs are in node; their packages come from npm's registry.
//
// It is imported by internal/check only.
package webclients

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	typescript "github.com/docket-gateway/docket/clients/typescript"
	"github.com/docket-gateway/docket/internal/npm"
)

// manifest is what npm installs the clients by.
//
//go:embed node/.npmrc node/package.json node/package-lock.json
var manifest embed.FS

// programs are what runs them.
//
//go:embed node/*.mjs node/relay.config.json node/package.json node/relay
var programs embed.FS

// Installed are the packages of the clients, and of Docket's own.
type Installed struct {
	clients npm.Installed
	own     npm.Installed
}

// Install fetches what the tests need from npm's registry into the user's folder for caches, unless it is there. Errors are
// npm.Install's.
func Install(ctx context.Context) (Installed, error) {
	files, err := fs.Sub(manifest, "node")
	if err != nil {
		return Installed{}, fmt.Errorf("web clients: %w", err)
	}
	clients, err := npm.Install(ctx, "docket-webclients", files)
	own, ownErr := npm.Install(ctx, "docket-typescript", typescript.Manifest)
	if err := errors.Join(err, ownErr); err != nil {
		return Installed{}, fmt.Errorf("web clients: %w", err)
	}
	return Installed{clients: clients, own: own}, nil
}
