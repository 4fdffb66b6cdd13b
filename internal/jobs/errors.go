package jobs

import (
	"errors"
	"fmt"

	"github.com/docket-gateway/docket/ent"
)

// Errors that stand for an expected outcome. Match them with errors.Is and errors.As.
var (
	// ErrNotFound: no such job or attempt, or it is another owner's.
	ErrNotFound = errors.New("not found")
	// ErrForbidden: the viewer may see it but only an operator may do this.
	ErrForbidden = errors.New("only an operator may do this")
	// ErrUnauthenticated: the context has no viewer.
	ErrUnauthenticated = errors.New("no viewer")
)

// Issue is one broken rule of an input. Path is an RFC 6901 pointer from the GraphQL input's root.
type Issue struct {
	Path    string
	Message string
}

// Codes of an InvalidInputError for a limit.
const (
	CodeInputTooLarge   = "INPUT_TOO_LARGE"
	CodeTooManyOpenJobs = "TOO_MANY_OPEN_JOBS"
)

// InvalidInputError means that nothing was stored and no key was used up.
type InvalidInputError struct {
	Code   string // empty but for a limit
	Issues []Issue
}

func (e *InvalidInputError) Error() string {
	if len(e.Issues) == 0 {
		return "the input is invalid"
	}
	first := e.Issues[0]
	if first.Path == "" { // the input as a whole
		return "the input is invalid: " + first.Message
	}
	return fmt.Sprintf("the input is invalid: %s: %s", first.Path, first.Message)
}

func invalid(path, format string, args ...any) *InvalidInputError {
	return beyond("", path, format, args...)
}

// beyond is invalid because of a limit, which has a code of its own.
func beyond(code, path, format string, args ...any) *InvalidInputError {
	return &InvalidInputError{Code: code, Issues: []Issue{{Path: path, Message: fmt.Sprintf(format, args...)}}}
}

// IdempotencyConflictError means that the key belongs to a job of this owner with another intent.
type IdempotencyConflictError struct{ Job *ent.Job }

func (e *IdempotencyConflictError) Error() string {
	return fmt.Sprintf("the idempotency key was used for another intent, of job %s", e.Job.ID)
}

// AttemptBlockedError means that another attempt of the job may still be at work.
type AttemptBlockedError struct{ By *ent.Attempt }

func (e *AttemptBlockedError) Error() string {
	return fmt.Sprintf("attempt %s is %s and blocks another one until it is settled or cancelled", e.By.ID, e.By.State)
}

// FallbackNotAllowedError means that the target is unknown, or its contract has not passed.
type FallbackNotAllowedError struct {
	Target  string
	Reasons []string
}

func (e *FallbackNotAllowedError) Error() string {
	return fmt.Sprintf("%q may not be used for this job now", e.Target)
}

// TooManyAttemptsError means that the job has had as many attempts as one may have.
type TooManyAttemptsError struct {
	Target string // that was asked for
	Max    int
}

func (e *TooManyAttemptsError) Error() string {
	return fmt.Sprintf("the job has had %d attempts, and may be given no other one by hand", e.Max)
}

// JobFinishedError means that the job is final.
type JobFinishedError struct{ Job *ent.Job }

func (e *JobFinishedError) Error() string { return fmt.Sprintf("job %s is %s", e.Job.ID, e.Job.State) }

// AttemptFinishedError is the verdict for whoever came second: the attempt had been settled before.
type AttemptFinishedError struct {
	Attempt *ent.Attempt
	Job     *ent.Job
}

func (e *AttemptFinishedError) Error() string {
	return fmt.Sprintf("attempt %s is already %s; job %s is %s", e.Attempt.ID, e.Attempt.State, e.Job.ID, e.Job.State)
}
