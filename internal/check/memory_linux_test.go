package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	t.Run("IsNotTakenFromADisk", func(t *testing.T) {
		t.Parallel()
		folder, remove, err := memoryIn("/proc", 0)
		require.NoError(t, err)
		require.Empty(t, folder)
		require.NoError(t, remove())
	})
	t.Run("IsNotTakenWithoutRoom", func(t *testing.T) {
		t.Parallel()
		folder, _, err := memoryIn(memoryFolder, 1<<62)
		require.NoError(t, err)
		require.Empty(t, folder)
	})
	t.Run("RemovesWhatAKilledRunLeft", func(t *testing.T) {
		t.Parallel()
		gone := exec.CommandContext(t.Context(), "true")
		require.NoError(t, gone.Run())
		base := t.TempDir()
		left := filepath.Join(base, memoryPrefix+strconv.Itoa(gone.Process.Pid))
		ours := filepath.Join(base, memoryPrefix+strconv.Itoa(os.Getpid()))
		for _, folder := range []string{left, ours} {
			require.NoError(t, os.Mkdir(folder, 0o700))
		}
		removeAbandoned(base)
		require.NoDirExists(t, left)
		require.DirExists(t, ours)
	})
}
