package tasks

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Bounds of task.yaml. docs/tasks.md lists them.
const (
	maxTemperature  = 2.0
	maxTokens       = 1_000_000
	maxInputBytes   = 64 << 20
	maxFallbacks    = 16
	maxHedgeAfter   = time.Hour
	maxRetries      = 20
	maxBackoff      = time.Hour
	maxContractRuns = 100
	maxContractAge  = 365 * 24 * time.Hour
	maxBudget       = 24 * time.Hour

	raceAllowed   = "allowed"
	raceForbidden = "forbidden"

	formatsAssert   = "assert"
	formatsAnnotate = "annotate"
)

var (
	namePattern    = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)
	versionPattern = regexp.MustCompile(`^[!-~]{1,64}$`)
	costPattern    = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,12})?$`)
	targetPattern  = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}/[!-~]{1,200}$`)
)

// check returns every rule that the file breaks, joined, each with the key's name.
func (f taskFile) check() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: "+format, append([]any{key}, args...)...))
	}
	between := func(key string, v duration, low, high time.Duration) {
		if d := time.Duration(v); d < low || d > high {
			bad(key, "must be between %s and %s, is %s", low, high, d)
		}
	}
	if !namePattern.MatchString(string(f.Name)) {
		bad("name", "must match [a-z][a-z0-9_-]* and have at most 64 characters")
	}
	if !versionPattern.MatchString(string(f.Version)) {
		bad("version", "must be 1 to 64 printable ASCII characters without spaces")
	}
	if t, err := strconv.ParseFloat(string(f.Temperature), 64); err != nil || t < 0 || t > maxTemperature {
		bad("temperature", "must be between 0 and %g", maxTemperature)
	}
	if f.MaxOutputTokens < 1 || f.MaxOutputTokens > maxTokens {
		bad("max_output_tokens", "must be between 1 and %d", maxTokens)
	}
	if !targetPattern.MatchString(string(f.Target)) {
		bad("target", "must be provider/model")
	}
	if len(f.Fallbacks) > maxFallbacks {
		bad("fallbacks", "must be at most %d", maxFallbacks)
	}
	seen := map[text]bool{f.Target: true}
	for i, t := range f.Fallbacks {
		key := fmt.Sprintf("fallbacks[%d]", i)
		if !targetPattern.MatchString(string(t)) {
			bad(key, "must be provider/model")
		}
		if seen[t] {
			bad(key, "is in the route twice")
		}
		seen[t] = true
	}
	switch f.Race {
	case raceAllowed:
	case raceForbidden:
		if f.HedgeAfter != 0 {
			bad("hedge_after", "needs race: allowed, since a hedge is a race")
		}
	default:
		bad("race", "must be allowed or forbidden")
	}
	if f.MaxInputBytes < 0 || f.MaxInputBytes > maxInputBytes {
		bad("max_input_bytes", "must be between 0 and %d", maxInputBytes)
	}
	if f.Formats != "" && f.Formats != formatsAssert && f.Formats != formatsAnnotate {
		bad("formats", "must be assert or annotate")
	}
	between("hedge_after", f.HedgeAfter, 0, maxHedgeAfter)
	if f.Retry.Max < 0 || f.Retry.Max > maxRetries {
		bad("retry.max", "must be between 0 and %d", maxRetries)
	}
	between("retry.base", f.Retry.Base, time.Millisecond, maxBackoff)
	between("retry.cap", f.Retry.Cap, time.Millisecond, maxBackoff)
	if f.Retry.Base > f.Retry.Cap {
		bad("retry.base", "must not be longer than retry.cap")
	}
	if f.Contract.Runs < 1 || f.Contract.Runs > maxContractRuns {
		bad("contract.runs", "must be between 1 and %d", maxContractRuns)
	}
	between("contract.max_age", f.Contract.MaxAge, time.Second, maxContractAge)
	if v := f.Contract.stability(); v <= 0 || v > 1 {
		bad("contract.stability", "must be above 0 and at most 1")
	}
	if b := f.Contract.Budget; b != nil {
		between("contract.budget.p50", b.P50, 0, maxBudget)
		between("contract.budget.p95", b.P95, 0, maxBudget)
		if b.Cost != "" && !costPattern.MatchString(string(b.Cost)) {
			bad("contract.budget.cost", "must be a decimal number that is not negative, without an exponent, such as 0.002")
		}
	}
	return errors.Join(errs...)
}

// stability is 1 where nothing is written.
func (c contractFile) stability() float64 {
	if c.Stability == "" {
		return 1
	}
	v, err := strconv.ParseFloat(string(c.Stability), 64)
	if err != nil {
		return 0
	}
	return v
}

func (c contractFile) budget() Budget {
	if c.Budget == nil {
		return Budget{}
	}
	return Budget{P50: time.Duration(c.Budget.P50), P95: time.Duration(c.Budget.P95), Cost: string(c.Budget.Cost)}
}
