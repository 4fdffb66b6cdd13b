// Package await lets tests wait for what is meant to happen, without guessing how long that takes on the machine they run on.
//
// It imports nothing of this module and is imported by tests only.
package await

import (
	"testing"
	"time"
)

// Patience bounds one wait. It costs nothing where a test passes, and is far above what a wait takes: many tests share few
// cores. A deadline whose passing is what a test is about is none of its uses.
const Patience = 3 * time.Minute

const interval = 10 * time.Millisecond

// Until polls a condition in the test's own goroutine, every 10 ms, and ends the test if it does not hold within Patience. It
// says then what was awaited, and what was there at the end as those of last tell it.
func Until(tb testing.TB, what string, condition func() bool, last ...func() string) {
	tb.Helper()
	Within(tb, Patience, what, condition, last...)
}

// Within is Until with a bound of its own, for what takes longer.
func Within(tb testing.TB, bound time.Duration, what string, condition func() bool, last ...func() string) {
	tb.Helper()
	late, again := time.NewTimer(bound), time.NewTicker(interval)
	defer late.Stop()
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-late.C:
			text := ""
			for _, l := range last {
				text += "\nat the end: " + l()
			}
			tb.Fatalf("waited %s in vain: %s%s", bound, what, text)
		}
	}
}

// Receive waits for a value of the channel, or for its end, and ends the test if neither comes within Patience.
func Receive[T any](tb testing.TB, what string, c <-chan T) (v T) {
	tb.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	select {
	case v = <-c:
	case <-late.C:
		tb.Fatalf("waited %s in vain: %s", Patience, what)
	}
	return v
}
