package command_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/command"
	"github.com/docket-gateway/docket/providers"
)

func TestJournal(t *testing.T) {
	t.Parallel()
	answer := contracts.Answer{Duration: time.Second, Outcome: providers.Outcome{Kind: providers.Completed, Output: []byte("{\"a\": \"\xff\"}")}}
	written := func(t *testing.T) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "journal.jsonl")
		j, err := command.OpenJournal(file, false)
		require.NoError(t, err)
		require.NoError(t, j.Save("one", answer))
		require.NoError(t, j.Save("two", contracts.Answer{Unknown: &providers.Failure{Code: "ACK_TIMEOUT"}}))
		kept, err := j.Close(false)
		require.NoError(t, err)
		require.Equal(t, 2, kept)
		return file
	}

	t.Run("GivesBackWhatItGot", func(t *testing.T) {
		t.Parallel()
		j, err := command.OpenJournal(written(t), true)
		require.NoError(t, err)
		got, ok := j.Load("one")
		require.True(t, ok)
		require.Equal(t, answer, got)
		got, ok = j.Load("two")
		require.True(t, ok)
		require.Equal(t, "ACK_TIMEOUT", got.Unknown.Code)
		_, ok = j.Load("three")
		require.False(t, ok)
		_, err = j.Close(true)
		require.NoError(t, err)
	})

	t.Run("CutsATornLineOff", func(t *testing.T) {
		t.Parallel()
		file := written(t)
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, raw[:len(raw)-5], 0o600))
		require.NoError(t, os.Chmod(file, 0o644))
		j, err := command.OpenJournal(file, true)
		require.NoError(t, err)
		require.Equal(t, 1, j.Len())
		require.NoError(t, j.Save("three", answer))
		_, err = j.Close(false)
		require.NoError(t, err)
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "also where it was open to others")
		j, err = command.OpenJournal(file, true)
		require.NoError(t, err)
		require.Equal(t, 2, j.Len())
		_, err = j.Close(true)
		require.NoError(t, err)
		require.NoFileExists(t, file)
	})

	t.Run("RefusesOtherDamage", func(t *testing.T) {
		t.Parallel()
		for name, text := range map[string]string{"no JSON": "{\"step\n", "no step": "{}\n", "an empty line": "\n"} {
			file := written(t)
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, append([]byte(text), raw...), 0o600))
			_, err = command.OpenJournal(file, true)
			require.ErrorContains(t, err, "is damaged in line 1", name)
			j, err := command.OpenJournal(file, false)
			require.NoError(t, err, "begun anew")
			require.Zero(t, j.Len())
			_, err = j.Close(true)
			require.NoError(t, err)
		}
	})

	t.Run("IsOfOneRunAtATime", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "journal.jsonl")
		j, err := command.OpenJournal(file, false)
		require.NoError(t, err)
		_, err = command.OpenJournal(file, true)
		require.ErrorIs(t, err, command.ErrJournalInUse)
		_, err = j.Close(true)
		require.NoError(t, err)
	})
}
