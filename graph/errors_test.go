package graph_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/jobs"
)

func TestExpectedOutcomesAreData(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	at := b.Attempt(t, j.ID)
	const jobQuery = `__typename ... on UserError { code message }`
	mutations := map[string]string{
		"createJob":      `mutation { createJob(input: {task: "t", input: 1}) { ` + jobQuery + ` ... on IdempotencyConflict { job { id } } ... on InvalidInput { issues { path } } } }`,
		"startAttempt":   `mutation { startAttempt(input: {jobId: "` + j.ID + `"}) { ` + jobQuery + ` ... on StartAttemptSuccess { attempt { id } job { id } } ... on AttemptBlocked { blockedBy { id job { id } } } ... on FallbackNotAllowed { target reasons } ... on JobFinished { job { id } } } }`,
		"cancelAttempt":  `mutation { cancelAttempt(input: {attemptId: "` + at.ID + `"}) { ` + jobQuery + ` ... on CancelAttemptSuccess { attempt { id } job { id attempts { id } } } ... on AttemptFinished { attempt { id } job { id } } } }`,
		"cancelJob":      `mutation { cancelJob(input: {jobId: "` + j.ID + `"}) { ` + jobQuery + ` ... on CancelJobSuccess { job { id } } ... on JobFinished { job { id } } } }`,
		"resolveAttempt": `mutation { resolveAttempt(input: {attemptId: "` + at.ID + `", outcome: FAILED, note: "n"}) { ` + jobQuery + ` ... on ResolveAttemptSuccess { attempt { id } } ... on AttemptFinished { attempt { id } job { id } } } }`,
	}
	for _, c := range []struct {
		err            error
		mutation       string
		typename, code string
	}{
		{&jobs.IdempotencyConflictError{Job: j}, "createJob", "IdempotencyConflict", "IDEMPOTENCY_CONFLICT"},
		{&jobs.InvalidInputError{Issues: []jobs.Issue{{Path: "/task", Message: "m"}}}, "createJob", "InvalidInput", "INVALID_INPUT"},
		{&jobs.InvalidInputError{Code: jobs.CodeTooManyOpenJobs, Issues: []jobs.Issue{{Message: "m"}}}, "createJob", "InvalidInput", "TOO_MANY_OPEN_JOBS"},
		{&jobs.InvalidInputError{Code: jobs.CodeInputTooLarge, Issues: []jobs.Issue{{Path: "/input", Message: "m"}}}, "createJob", "InvalidInput", "INPUT_TOO_LARGE"},
		{nil, "startAttempt", "StartAttemptSuccess", ""},
		{&jobs.AttemptBlockedError{By: at}, "startAttempt", "AttemptBlocked", "ATTEMPT_BLOCKED"},
		{&jobs.FallbackNotAllowedError{Target: "demo/x"}, "startAttempt", "FallbackNotAllowed", "FALLBACK_NOT_ALLOWED"},
		{&jobs.TooManyAttemptsError{Target: "demo/x", Max: 3}, "startAttempt", "FallbackNotAllowed", "TOO_MANY_ATTEMPTS"},
		{&jobs.JobFinishedError{Job: j}, "startAttempt", "JobFinished", "JOB_FINISHED"},
		{jobs.ErrNotFound, "startAttempt", "NotFound", "NOT_FOUND"},
		{nil, "cancelAttempt", "CancelAttemptSuccess", ""},
		{&jobs.AttemptFinishedError{Attempt: at, Job: j}, "cancelAttempt", "AttemptFinished", "ATTEMPT_FINISHED"},
		{fmt.Errorf("wrapped: %w", jobs.ErrNotFound), "cancelAttempt", "NotFound", "NOT_FOUND"},
		{nil, "cancelJob", "CancelJobSuccess", ""},
		{&jobs.JobFinishedError{Job: j}, "cancelJob", "JobFinished", "JOB_FINISHED"},
		{jobs.ErrNotFound, "cancelJob", "NotFound", "NOT_FOUND"},
		{nil, "resolveAttempt", "ResolveAttemptSuccess", ""},
		{&jobs.AttemptFinishedError{Attempt: at, Job: j}, "resolveAttempt", "AttemptFinished", "ATTEMPT_FINISHED"},
		{&jobs.InvalidInputError{Issues: []jobs.Issue{{Path: "/attemptId", Message: "m"}}}, "resolveAttempt", "InvalidInput", "INVALID_INPUT"},
		{jobs.ErrNotFound, "resolveAttempt", "NotFound", "NOT_FOUND"},
	} {
		b.jobs.err, b.jobs.done = c.err, jobs.AttemptAndJob{Attempt: at, Job: j}
		a := b.post(t, asOperator, mutations[c.mutation], "")
		require.Equal(t, c.typename, a.at(t, c.mutation, "__typename"))
		if c.code != "" {
			require.Equal(t, c.code, a.at(t, c.mutation, "code"))
			require.NotEmpty(t, a.at(t, c.mutation, "message"))
		}
	}
}

func TestMalformedIDsAreNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, query := range map[string]string{
		"startAttempt":   `mutation { startAttempt(input: {jobId: "\u0000"}) { __typename } }`,
		"cancelAttempt":  `mutation { cancelAttempt(input: {attemptId: "job_01h455vb4pex5vsknk084sn02q"}) { __typename } }`,
		"cancelJob":      `mutation { cancelJob(input: {jobId: "att_01h455vb4pex5vsknk084sn02q"}) { __typename } }`,
		"resolveAttempt": `mutation { resolveAttempt(input: {attemptId: "", outcome: FAILED, note: "n"}) { __typename } }`,
	} {
		require.Equal(t, "NotFound", b.post(t, asOperator, query, "").at(t, name, "__typename"))
	}
	require.Zero(t, b.jobs.calls)
}

func TestUnexpectedErrorsHaveCodesAndTellNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		err  error
		code string
	}{
		{errors.New("connect to db.internal: secret"), "INTERNAL"},
		{fmt.Errorf("secret: %w", jobs.ErrForbidden), "FORBIDDEN"},
		{jobs.ErrUnauthenticated, "UNAUTHENTICATED"},
		{fmt.Errorf("secret: %w", context.DeadlineExceeded), "CANCELLED"},
		{fmt.Errorf("secret: %w", &pgconn.PgError{Code: "22021", Message: "invalid byte sequence"}), "BAD_USER_INPUT"},
		{fmt.Errorf("secret: %w", &pgconn.PgError{Code: "40001"}), "INTERNAL"},
	} {
		b.jobs.err = c.err
		a := b.post(t, asAlice, create, "")
		require.Equal(t, c.code, a.code())
		require.NotContains(t, a.body, "secret")
		require.Equal(t, []any{"createJob"}, a.Errors[0].Path)
	}
	require.Contains(t, b.log.String(), "db.internal")
}

func TestPanicsAreInternalErrors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.jobs.done = jobs.AttemptAndJob{} // a nil job where the schema promises one
	a := b.post(t, asAlice, `mutation { cancelJob(input: {jobId: "job_01h455vb4pex5vsknk084sn02q"}) { ... on CancelJobSuccess { job { id } } } }`, "")
	require.Equal(t, "INTERNAL", a.code())
	b.jobs.panics = "secret"
	a = b.post(t, asAlice, create, "")
	require.Equal(t, "INTERNAL", a.code())
	require.NotContains(t, a.body, "secret")
	require.Contains(t, b.log.String(), "a resolver panicked")
}
