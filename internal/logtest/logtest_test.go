package logtest_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/logtest"
)

func TestBufferTakesWritesAtOnceAndKeepsThemWhole(t *testing.T) {
	t.Parallel()
	var b logtest.Buffer
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				_, _ = fmt.Fprintln(&b, "line of", i)
				_ = b.String()
			}
		})
	}
	all.Wait()
	lines := b.Lines()
	require.Len(t, lines, 800)
	for _, l := range lines {
		require.Regexp(t, `^line of \d$`, l)
	}
}

func TestLinesAreWhole(t *testing.T) {
	t.Parallel()
	var b logtest.Buffer
	require.Empty(t, b.Lines())
	for _, text := range []string{"one\ntw", "o\n\nthr"} {
		_, err := b.Write([]byte(text))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"one", "two", ""}, b.Lines())
	require.Equal(t, "one\ntwo\n\nthr", b.String())
}
