package exchange

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"go.jetify.com/typeid"
)

var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// idPrefix is of the ids of contract results.
const idPrefix = "ctr"

// maxText bounds names, in bytes.
const maxText = 1024

// check says why the result cannot be what it says that it is.
func (e Entry) check(latest time.Time) error {
	if id, err := typeid.FromString(e.ID); err != nil || id.Prefix() != idPrefix {
		return errors.New("its id is not one of a contract result")
	}
	r := e.Result
	for what, text := range map[string]string{"task": r.Task, "target": r.Target, "ran_by": r.RanBy, "checks_version": r.Basis.ChecksVersion} {
		if text == "" || len(text) > maxText || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%s is empty or longer than %d bytes", what, maxText)
		}
	}
	for what, text := range map[string]string{"task_version": r.Basis.TaskVersion, "cases_digest": r.Basis.CasesDigest, "config_digest": r.Basis.ConfigDigest} {
		if !digest.MatchString(text) {
			return fmt.Errorf("%s is not a digest", what)
		}
	}
	judged := r
	judged.Judge()
	switch {
	case !r.Mode.OpensGate():
		return fmt.Errorf("a result of mode %q says nothing about the target of today and is not carried", r.Mode)
	case judged.Digest != r.Digest:
		return errors.New("its digest is not that of its task version, cases, configuration, checks and target")
	case judged.Passed != r.Passed:
		return fmt.Errorf("it says passed: %t, and its checks say otherwise", r.Passed)
	case r.StartedAt.IsZero() || r.FinishedAt.Before(r.StartedAt):
		return errors.New("its run ended before it began")
	case r.FinishedAt.After(latest):
		return errors.New("its run ended in the future")
	}
	return nil
}
