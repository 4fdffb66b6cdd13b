// Package typescript holds the sources of the npm package beside it, for the tests that build and run it.
//
// It is imported by internal/webclients only.
package typescript

import "embed"

// Manifest is what npm installs the package's own packages by.
//
//go:embed .npmrc package.json package-lock.json
var Manifest embed.FS

// Sources are those of the package, its tests and its example.
//
//go:embed package.json tsconfig.json tsconfig.test.json codegen.mjs manifest.mjs src test examples
var Sources embed.FS
