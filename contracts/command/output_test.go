package command_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts/command"
)

// TestAReportThatCannotBeWrittenIsSaidFirst, before anything is sent and paid for.
func TestAReportThatCannotBeWrittenIsSaidFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	require.NoError(t, os.WriteFile(kept, []byte("before"), 0o600))
	for _, o := range []command.Options{
		{Output: filepath.Join(dir, "no", "such", "folder.json")},
		{Output: dir},
		{Reports: []string{"junit=" + filepath.Join(kept, "below-a-file.xml")}},
		{Output: kept, Reports: []string{"json=" + filepath.Join(dir, "new"), "html=" + filepath.Join(dir, "no", "such.html")}},
	} {
		m := always(`{"a": "x"}`)
		b := newBench(t, map[string]*model{primary: m})
		o.Target = primary
		code, out, errs := b.run(t, t.Context(), o)
		require.Equal(t, command.ExitUnusable, code, out)
		require.Contains(t, errs, "the report cannot be written: ")
		require.Zero(t, m.asked.Load())
		require.Empty(t, b.recorder.stored)
	}
	raw, err := os.ReadFile(kept)
	require.NoError(t, err)
	require.Equal(t, "before", string(raw), "trying changes nothing")
	require.NoFileExists(t, filepath.Join(dir, "new"))
}
