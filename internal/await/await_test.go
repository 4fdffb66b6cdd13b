package await_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
)

// failing is a test that may fail without harm.
type failing struct {
	testing.TB

	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure is what the wait ended its test with, and how long it took by the bubble's clock. Nothing is said if it did not.
func failure(t *testing.T, wait func(tb testing.TB)) (said string, took time.Duration) {
	t.Helper()
	f, start, done := &failing{TB: t}, time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		wait(f)
	}()
	<-done
	return f.said, time.Since(start)
}

func TestUntilLooksAgainUntilTheConditionHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		said, took := failure(t, func(tb testing.TB) {
			await.Until(tb, "three looks", func() bool { looks++; return looks == 3 })
		})
		require.Empty(t, said)
		require.Equal(t, 3, looks)
		require.Equal(t, 20*time.Millisecond, took)
	})
}

func TestUntilSaysWhatWasAwaitedAndWhatWasThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		said, took := failure(t, func(tb testing.TB) {
			await.Until(tb, "the job ends", func() bool { looks++; return false }, func() string { return fmt.Sprint("look ", looks) })
		})
		require.Regexp(t, `^waited 3m0s in vain: the job ends\nat the end: look \d{4,}$`, said)
		require.Equal(t, await.Patience, took)
	})
}

func TestReceiveTakesAValueOrTheEnd(t *testing.T) {
	t.Parallel()
	c := make(chan int, 1)
	c <- 7
	require.Equal(t, 7, await.Receive(t, "a number", c))
	close(c)
	require.Zero(t, await.Receive(t, "the end", c))
}

func TestReceiveSaysWhatWasAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said, took := failure(t, func(tb testing.TB) { await.Receive(tb, "a number", make(chan int)) })
		require.Equal(t, "waited 3m0s in vain: a number", said)
		require.Equal(t, await.Patience, took)
	})
}
