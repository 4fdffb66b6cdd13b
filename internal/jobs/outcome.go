package jobs

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/schema"
	"github.com/docket-gateway/docket/internal/tasks"
)

// Codes of attempt errors that this package gives. Providers have their own.
const (
	CodeCancelled         = "CANCELLED"
	CodeReplaced          = "REPLACED"
	CodeSuperseded        = "SUPERSEDED"
	CodeWorkerLost        = "WORKER_LOST"
	CodeContractNotPassed = "CONTRACT_NOT_PASSED"
	CodeResolved          = "RESOLVED_AS_FAILED"
	CodePresumedDead      = "PRESUMED_DEAD"
	CodeOutputNotJSON     = "OUTPUT_NOT_JSON"
	CodeOutputInvalid     = "OUTPUT_INVALID"
)

// Bounds in bytes on what providers say and the database keeps.
const (
	maxCode    = 100
	maxMessage = 4 << 10
	maxForeign = 500 // a provider's identifiers
)

// Failure is why an attempt is FAILED, UNKNOWN or CANCELLED. Message holds no input, output or key.
type Failure struct {
	Code       string
	Message    string
	Retryable  bool
	RetryAfter time.Duration // 0 if the provider did not say
}

// Outcome is what is known of an attempt. With a nil Failure it is a complete answer.
type Outcome struct {
	Output            json.RawMessage
	Failure           *Failure
	Unknown           bool // the failure leaves open what the provider does
	Usage             Usage
	ProviderRequestID string
	// Via is how the outcome became known, if it was not by the attempt's own request: ViaCallback, ViaAsked or ViaResent.
	// It stands in the event's detail as settledBy.
	Via string
	// Listens is how much longer, after an Unknown outcome, its worker waits for a late answer. Nothing is re-sent before.
	Listens time.Duration
}

// What Via and an event's settledBy say.
const (
	ViaCallback     = "callback"       // the provider reported it by itself
	ViaAsked        = "provider asked" // by the request's handle
	ViaResent       = "re-sent"        // under the same key
	ViaPresumedDead = "presumed dead"  // by policy
)

// clean makes a failure fit to be stored, whatever a provider wrote: a definite answer must not be lost over its words.
func (f *Failure) clean() *Failure {
	if f == nil {
		return nil
	}
	g := *f
	g.Code, g.Message = clean(f.Code, maxCode), clean(f.Message, maxMessage)
	return &g
}

func (o Outcome) clean() Outcome {
	o.Failure, o.ProviderRequestID = o.Failure.clean(), clean(o.ProviderRequestID, maxForeign)
	return o
}

// clean replaces what PostgreSQL refuses in a text (NUL, invalid UTF-8) and cuts at most bytes.
func clean(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= most {
		return s
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// checkOutput is the rule for results: one JSON text, exactly as it came, that keeps the output schema and carries no
// undeclared key.
func checkOutput(task *tasks.Definition, output []byte) *Failure {
	issues := task.OutputSchema.ValidateOutput(output)
	if len(issues) == 0 {
		return nil
	}
	if issues[0].Rule == "syntax" {
		return &Failure{Code: CodeOutputNotJSON, Message: "The answer is not one JSON text: " + issues[0].Message}
	}
	return &Failure{Code: CodeOutputInvalid, Message: "The answer breaks the task's output schema: " + describe(issues)}
}

// describe names the first broken rules, without any value.
func describe(issues []schema.Issue) string {
	const most = 5
	var b strings.Builder
	for i, is := range issues[:min(most, len(issues))] {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", is.Pointer, is.Message)
	}
	if n := len(issues) - most; n > 0 {
		fmt.Fprintf(&b, "; and %d more", n)
	}
	return b.String()
}

func setFailure(f *Failure) func(*ent.AttemptUpdate) {
	return func(u *ent.AttemptUpdate) {
		u.SetErrorCode(f.Code).SetErrorMessage(f.Message).SetErrorRetryable(f.Retryable)
		if f.RetryAfter > 0 {
			u.SetErrorRetryAfterMs(f.retryAfterMs())
		} else {
			u.ClearErrorRetryAfterMs()
		}
	}
}

// retryAfterMs is rounded up: not before is not before.
func (f *Failure) retryAfterMs() int {
	return int((f.RetryAfter + time.Millisecond - 1).Milliseconds())
}

// keep puts what setFailure writes on the attempt in memory.
func (f *Failure) keep(a *ent.Attempt) {
	a.ErrorCode, a.ErrorMessage, a.ErrorRetryable, a.ErrorRetryAfterMs = &f.Code, &f.Message, &f.Retryable, nil
	if f.RetryAfter > 0 {
		a.ErrorRetryAfterMs = new(f.retryAfterMs())
	}
}

func setRequestID(o Outcome) func(*ent.AttemptUpdate) {
	return func(u *ent.AttemptUpdate) {
		if o.ProviderRequestID != "" {
			u.SetProviderRequestID(o.ProviderRequestID)
		}
	}
}

func all(fs ...func(*ent.AttemptUpdate)) func(*ent.AttemptUpdate) {
	return func(u *ent.AttemptUpdate) {
		for _, f := range fs {
			f(u)
		}
	}
}

func failureDetail(f *Failure) detail {
	d := detail{"code": f.Code, "message": f.Message, "retryable": f.Retryable}
	if f.RetryAfter > 0 {
		d["retryAfterMs"] = f.RetryAfter.Milliseconds()
	}
	return d
}
