package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"entgo.io/ent/privacy"
	"github.com/99designs/gqlgen/graphql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/events"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Codes of top-level errors that resolvers give, in extensions.code. internal/operation and internal/transport have
// those of malformed requests.
const (
	CodeBadUserInput    = "BAD_USER_INPUT"
	CodeCancelled       = "CANCELLED" // the client went away, or the request's time was over
	CodeForbidden       = "FORBIDDEN"
	CodeInternal        = "INTERNAL" // details are in the log only
	CodeNotFound        = "NOT_FOUND"
	CodePageTooLarge    = "PAGE_TOO_LARGE"
	CodeUnauthenticated = "UNAUTHENTICATED"
)

// codedError is an error whose text is for the client.
type codedError struct{ code, message string }

func (e *codedError) Error() string { return e.message }

func coded(code, format string, args ...any) error {
	return &codedError{code: code, message: fmt.Sprintf(format, args...)}
}

// resolverError marks what a resolver returned, as opposed to what gqlgen found wrong with the request: the text of
// either is in a gqlerror.Error, but only the latter is fit for the client.
type resolverError struct{ err error }

func (e *resolverError) Error() string { return e.err.Error() }
func (e *resolverError) Unwrap() error { return e.err }

// MarkResolverErrors is the field middleware that PresentError relies on.
func MarkResolverErrors(ctx context.Context, next graphql.Resolver) (any, error) {
	res, err := next(ctx)
	if err != nil {
		err = &resolverError{err: err}
	}
	return res, err
}

// ErrorPresenter gives every error a code and tells nothing of internal ones but that they happened.
func ErrorPresenter(log *slog.Logger) graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) *gqlerror.Error {
		out := &gqlerror.Error{Path: graphql.GetPath(ctx)}
		given, hasGiven := errors.AsType[*gqlerror.Error](err)
		if hasGiven {
			out.Locations = given.Locations
			if given.Path != nil {
				out.Path = given.Path
			}
		}
		code, message := classify(ctx, err)
		out.Message, out.Extensions = message, map[string]any{"code": code}
		if beyond, ok := errors.AsType[*events.BeyondError](err); ok {
			out.Extensions["lastEvent"] = beyond.Last
		}
		if code == CodeInternal {
			log.ErrorContext(ctx, "a request failed", "error", err, "path", out.Path.String())
		}
		return out
	}
}

func classify(ctx context.Context, err error) (code, message string) {
	if e, ok := errors.AsType[*codedError](err); ok {
		return e.code, e.message
	}
	if e, ok := errors.AsType[*events.BeyondError](err); ok {
		return CodeBadUserInput, "after is beyond the log: " + e.Error()
	}
	switch {
	case errors.Is(err, jobs.ErrUnauthenticated):
		return CodeUnauthenticated, "the request is not authenticated"
	case errors.Is(err, jobs.ErrForbidden):
		return CodeForbidden, jobs.ErrForbidden.Error()
	case errors.Is(err, jobs.ErrNotFound), errors.Is(err, events.ErrNotFound):
		return CodeNotFound, "there is no such job or attempt"
	case errors.Is(err, privacy.Deny):
		if _, ok := viewer.FromContext(ctx); !ok {
			return CodeUnauthenticated, "the request is not authenticated"
		}
		return CodeForbidden, "not allowed"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return CodeCancelled, "the request was cancelled"
	case errors.Is(err, ent.ErrEmptyJobWhereInput), errors.Is(err, ent.ErrEmptyAttemptWhereInput):
		return CodeBadUserInput, "a filter holds an empty object"
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && badText[pg.Code] {
		return CodeBadUserInput, "a value cannot be stored or compared" // the database's message may repeat it
	}
	if _, ok := errors.AsType[*panicError](err); ok {
		return CodeInternal, "internal error"
	}
	_, fromResolver := errors.AsType[*resolverError](err)
	if e, ok := errors.AsType[*gqlerror.Error](err); ok {
		if code, ok := e.Extensions["code"].(string); ok {
			return code, e.Message
		}
		if !fromResolver && !errors.Is(err, graphql.ErrInvalidNull) {
			return CodeBadUserInput, e.Message
		}
	}
	return CodeInternal, "internal error"
}

// badText are the SQLSTATEs of values that no text or number column takes, such as a NUL.
var badText = map[string]bool{"22021": true, "22P05": true, "22P02": true, "22003": true, "22007": true, "22008": true}

type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// Recover logs a panic with its stack; the client is told that there was an internal error.
func Recover(log *slog.Logger) graphql.RecoverFunc {
	return func(ctx context.Context, value any) error {
		log.ErrorContext(ctx, "a resolver panicked", "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
		return &panicError{value: value}
	}
}
