package graph

import (
	"context"
	"net/http"
	"strings"

	"github.com/99designs/gqlgen/graphql"

	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/tracecontext"
)

// keyHeader may carry a createJob's key. Transports that are no single HTTP request leave it out of the headers.
const keyHeader = "Idempotency-Key"

// idempotencyKey returns the key of the request's only createJob, nil if none is given anywhere.
func idempotencyKey(ctx context.Context, input *string) (*string, error) {
	op := graphql.GetOperationContext(ctx)
	values := op.Headers[http.CanonicalHeaderKey(keyHeader)]
	if len(values) == 0 {
		return input, nil
	}
	if createJobs(op) > 1 {
		return nil, badKey("the " + keyHeader + " header is for requests with exactly one createJob")
	}
	if len(values) > 1 {
		return nil, badKey("there is more than one " + keyHeader + " header")
	}
	key, ok := unquoteKey(values[0])
	switch {
	case !ok:
		return nil, badKey("the " + keyHeader + " header is malformed")
	case input != nil && *input != key:
		return nil, badKey("the " + keyHeader + " header and the input differ")
	}
	return &key, nil
}

// traceparent is the request's trace context, nil if it brought none that is valid.
func traceparent(ctx context.Context) *string {
	if tp := tracecontext.FromHeader(graphql.GetOperationContext(ctx).Headers); tp != "" {
		return &tp
	}
	return nil
}

func badKey(message string) error {
	return &jobs.InvalidInputError{Issues: []jobs.Issue{{Path: "/idempotencyKey", Message: message}}}
}

// createJobs counts by response name, through fragments, @skip and @include, as they will be executed.
func createJobs(op *graphql.OperationContext) (n int) {
	for _, f := range graphql.CollectFields(op, op.Operation.SelectionSet, []string{"Mutation"}) {
		if f.Name == "createJob" {
			n++
		}
	}
	return n
}

// unquoteKey reads a string as RFC 8941 writes it, as the IETF's draft wants it; what is not in quotes is taken as it is.
func unquoteKey(s string) (string, bool) {
	if s == "" {
		return "", false
	}
	if s[0] != '"' {
		return s, true
	}
	if len(s) < 2 || s[len(s)-1] != '"' {
		return "", false
	}
	var sb strings.Builder
	for i, body := 0, s[1:len(s)-1]; i < len(body); i++ {
		c := body[i]
		switch {
		case c == '"' || c < 0x20 || c > 0x7e:
			return "", false
		case c == '\\':
			i++
			if i == len(body) || body[i] != '"' && body[i] != '\\' {
				return "", false
			}
			c = body[i]
		}
		sb.WriteByte(c)
	}
	return sb.String(), true
}
