package modelserver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/npm"
)

func TestLockNamesNoRegistry(t *testing.T) {
	t.Parallel()
	raw, err := sources.ReadFile("server/package-lock.json")
	require.NoError(t, err)
	lock, err := npm.ReadLock(raw)
	require.NoError(t, err)
	require.NoError(t, lock.NamesNoRegistry())
	require.Equal(t, "3.21.1", lock.Packages["node_modules/node-llama-cpp"].Version)
	require.Contains(t, lock.Packages, "node_modules/@node-llama-cpp/linux-x64", "llama.cpp comes as a package")
}
