// Package retryafter reads how long a server asks its clients to wait.
//
// It imports nothing of this module, and providers may import it.
package retryafter

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Max bounds what Parse returns, so that no sum of durations overflows.
const Max = 30 * 24 * time.Hour

// Parse reads Retry-After (RFC 9110, section 10.2.3), in seconds or as an HTTP date, and the finer retry-after-ms that some
// servers send. A date is compared with the answer's own Date where there is one, so that the two clocks need not agree;
// else with now. It returns from 0, which is what an absent, past or malformed header means, to Max.
func Parse(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return clamp(ms / 1000)
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		return clamp(s)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return clamp(at.Sub(now).Seconds())
}

func clamp(seconds float64) time.Duration {
	if math.IsNaN(seconds) || seconds <= 0 {
		return 0
	}
	if seconds >= Max.Seconds() {
		return Max
	}
	return time.Duration(seconds * float64(time.Second))
}
