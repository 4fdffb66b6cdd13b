package graph

import (
	"cmp"
	"errors"

	"github.com/docket-gateway/docket/graph/model"
	"github.com/docket-gateway/docket/internal/jobs"
)

// Codes of the expected outcomes, in UserError.code.
const (
	codeAttemptBlocked      = "ATTEMPT_BLOCKED"
	codeAttemptFinished     = "ATTEMPT_FINISHED"
	codeFallbackNotAllowed  = "FALLBACK_NOT_ALLOWED"
	codeIdempotencyConflict = "IDEMPOTENCY_CONFLICT"
	codeInvalidInput        = "INVALID_INPUT"
	codeJobFinished         = "JOB_FINISHED"
	codeTooManyAttempts     = "TOO_MANY_ATTEMPTS" // in a FallbackNotAllowed
)

// A problem is what a mutation's error is as data, or the error itself if it is none that its union has.

func createJobProblem(err error) (model.CreateJobResult, error) {
	if e, ok := errors.AsType[*jobs.IdempotencyConflictError](err); ok {
		return model.IdempotencyConflict{Code: codeIdempotencyConflict, Message: e.Error(), Job: e.Job}, nil
	}
	if e, ok := errors.AsType[*jobs.InvalidInputError](err); ok {
		return invalidInput(e), nil
	}
	return nil, err
}

func startAttemptProblem(err error) (model.StartAttemptResult, error) {
	if e, ok := errors.AsType[*jobs.AttemptBlockedError](err); ok {
		return model.AttemptBlocked{Code: codeAttemptBlocked, Message: e.Error(), BlockedBy: e.By}, nil
	}
	if e, ok := errors.AsType[*jobs.FallbackNotAllowedError](err); ok {
		return model.FallbackNotAllowed{
			Code: codeFallbackNotAllowed, Message: e.Error(), Target: e.Target, Reasons: append([]string{}, e.Reasons...),
		}, nil
	}
	if e, ok := errors.AsType[*jobs.TooManyAttemptsError](err); ok {
		return model.FallbackNotAllowed{Code: codeTooManyAttempts, Message: e.Error(), Target: e.Target, Reasons: []string{e.Error()}}, nil
	}
	if e, ok := errors.AsType[*jobs.JobFinishedError](err); ok {
		return jobFinished(e), nil
	}
	if errors.Is(err, jobs.ErrNotFound) {
		return notFound(), nil
	}
	return nil, err
}

func cancelAttemptProblem(err error) (model.CancelAttemptResult, error) {
	if err := badInput(err); err != nil {
		return nil, err
	}
	if e, ok := errors.AsType[*jobs.AttemptFinishedError](err); ok {
		return attemptFinished(e), nil
	}
	if errors.Is(err, jobs.ErrNotFound) {
		return notFound(), nil
	}
	return nil, err
}

func resolveAttemptProblem(err error) (model.ResolveAttemptResult, error) {
	if e, ok := errors.AsType[*jobs.AttemptFinishedError](err); ok {
		return attemptFinished(e), nil
	}
	if e, ok := errors.AsType[*jobs.InvalidInputError](err); ok {
		return invalidInput(e), nil
	}
	if errors.Is(err, jobs.ErrNotFound) {
		return notFound(), nil
	}
	return nil, err
}

func cancelJobProblem(err error) (model.CancelJobResult, error) {
	if err := badInput(err); err != nil {
		return nil, err
	}
	if e, ok := errors.AsType[*jobs.JobFinishedError](err); ok {
		return jobFinished(e), nil
	}
	if errors.Is(err, jobs.ErrNotFound) {
		return notFound(), nil
	}
	return nil, err
}

// badInput is the error for input that a result's union has no place for, nil if err is about something else.
func badInput(err error) error {
	if e, ok := errors.AsType[*jobs.InvalidInputError](err); ok {
		return coded(CodeBadUserInput, "%s", e.Error())
	}
	return nil
}

func invalidInput(e *jobs.InvalidInputError) model.InvalidInput {
	issues := make([]*model.InputIssue, len(e.Issues))
	for i, issue := range e.Issues {
		issues[i] = &model.InputIssue{Path: issue.Path, Message: issue.Message}
	}
	return model.InvalidInput{Code: cmp.Or(e.Code, codeInvalidInput), Message: e.Error(), Issues: issues}
}

func jobFinished(e *jobs.JobFinishedError) model.JobFinished {
	return model.JobFinished{Code: codeJobFinished, Message: e.Error(), Job: e.Job}
}

func attemptFinished(e *jobs.AttemptFinishedError) model.AttemptFinished {
	return model.AttemptFinished{Code: codeAttemptFinished, Message: e.Error(), Attempt: e.Attempt, Job: e.Job}
}

func notFound() model.NotFound {
	return model.NotFound{Code: CodeNotFound, Message: "there is no such job or attempt"}
}
