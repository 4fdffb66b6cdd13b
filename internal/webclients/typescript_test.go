package webclients

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	typescript "github.com/docket-gateway/docket/clients/typescript"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/npm"
)

func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	w := open(t) // which has compiled it under its strict rules

	t.Run("KeepsItsOwnTests", func(t *testing.T) {
		t.Parallel()
		tests, err := filepath.Glob(filepath.Join(w.own, "build", "test", "*.test.js"))
		require.NoError(t, err)
		require.Len(t, tests, 8)
		out := w.run(t, w.own, nil, append([]string{"--test", "--test-reporter=tap"}, tests...)...)
		require.Regexp(t, `(?m)^# fail 0$`, out)
		require.Regexp(t, `(?m)^# skipped 0$`, out)
		passed := regexp.MustCompile(`(?m)^# pass (\d+)$`).FindStringSubmatch(out)
		require.NotNil(t, passed, out)
		require.NotEqual(t, "0", passed[1])
	})

	t.Run("WorksWithTrustedDocuments", func(t *testing.T) {
		t.Parallel()
		urls := gateways(t, 1, func(cfg *config.Config) {
			cfg.TrustedDocuments = config.TrustedDocuments{Manifest: filepath.Join(w.own, "dist", "trusted-documents.json"), Required: true}
		})
		w.run(t, w.clients, nil, "trusted.mjs", urls[0])
	})

	t.Run("HasTheDocumentsThatTheSchemaGives", func(t *testing.T) {
		t.Parallel()
		fresh := t.TempDir()
		schema, err := filepath.Abs(filepath.Join("..", "..", "graph"))
		require.NoError(t, err)
		w.run(t, w.own, nil, "codegen.mjs", schema, fresh)
		want, err := os.ReadFile(filepath.Join(fresh, "documents.ts"))
		require.NoError(t, err)
		got, err := typescript.Sources.ReadFile("src/generated/documents.ts")
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "run npm ci && npm run codegen in clients/typescript")
	})
}

func TestLocksNameNoRegistry(t *testing.T) {
	t.Parallel()
	clients, err := manifest.ReadFile("node/package-lock.json")
	require.NoError(t, err)
	own, err := typescript.Manifest.ReadFile("package-lock.json")
	require.NoError(t, err)
	for _, raw := range [][]byte{clients, own} {
		lock, err := npm.ReadLock(raw)
		require.NoError(t, err)
		require.NoError(t, lock.NamesNoRegistry())
	}
	lock, err := npm.ReadLock(own)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"graphql-ws": lock.Packages["node_modules/graphql-ws"].Version}, lock.Packages[""].Dependencies,
		"the client's only package at run time")
}
