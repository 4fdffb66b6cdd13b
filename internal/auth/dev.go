package auth

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/docket-gateway/docket/internal/viewer"
)

const (
	devIssuer  = "dev"
	devDefault = "local"
	maxSubject = 255
	// maxDevHeader bounds the work on a header before anything in it is looked at.
	maxDevHeader = len("Bearer dev:") + maxSubject + len(":operator")
)

// Dev believes what the client says: `Bearer dev:<subject>` or `Bearer dev:<subject>:operator`; no header is the operator
// "local". It is for loopback listeners only, see RequireLoopback.
//
// A subject is as [ValidSubject] says, without colons.
type Dev struct{}

// Authenticate implements Authenticator.
func (Dev) Authenticate(_ context.Context, authorization string) (Identity, error) {
	if authorization == "" {
		return Identity{Viewer: viewer.Viewer{Issuer: devIssuer, Subject: devDefault, Operator: true}}, nil
	}
	if len(authorization) > maxDevHeader {
		return Identity{}, fmt.Errorf("%w: the Authorization header is too long", ErrUnauthenticated)
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	rest, ok := strings.CutPrefix(token, "dev:")
	if !strings.EqualFold(scheme, "Bearer") || !ok {
		return Identity{}, fmt.Errorf("%w: expected Bearer dev:<subject> or Bearer dev:<subject>:operator", ErrUnauthenticated)
	}
	// A colon ends the subject, so that a misspelt role is an error and not somebody else's name.
	subject, role, hasRole := strings.Cut(rest, ":")
	if hasRole && role != "operator" {
		return Identity{}, fmt.Errorf("%w: the only role is operator", ErrUnauthenticated)
	}
	if !ValidSubject(subject) {
		return Identity{}, fmt.Errorf("%w: a subject is 1 to %d printable characters", ErrUnauthenticated, maxSubject)
	}
	return Identity{Viewer: viewer.Viewer{Issuer: devIssuer, Subject: subject, Operator: hasRole}}, nil
}

// ValidSubject says whether s may name somebody: 1 to 255 bytes of printable characters, without spaces at its ends.
func ValidSubject(s string) bool {
	if s == "" || len(s) > maxSubject || !utf8.ValidString(s) || strings.TrimSpace(s) != s {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
