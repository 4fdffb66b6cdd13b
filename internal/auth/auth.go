// Package auth finds out who a request comes from and puts that viewer into its context.
//
// Of this module it imports the viewer alone.
package auth

import (
	"context"
	"time"

	"github.com/docket-gateway/docket/internal/viewer"
)

// Codes of the errors that a Guard answers with.
const (
	CodeUnauthenticated = "UNAUTHENTICATED"  // 401
	CodeForbidden       = "FORBIDDEN"        // 403: from another site, to another host, or for operators only
	CodeUnavailable     = "AUTH_UNAVAILABLE" // 503: the credentials cannot be checked now
)

// Errors of authenticators. Their texts, and those of the errors that wrap them, never hold credentials.
var (
	// ErrUnauthenticated is wrapped by every error about missing, malformed or refused credentials.
	ErrUnauthenticated error = &problem{text: "unauthenticated", code: CodeUnauthenticated, closeCode: 4403}
	// ErrUnavailable is wrapped where nobody can say now whether the credentials are good.
	ErrUnavailable error = &problem{text: "credentials cannot be checked now", code: CodeUnavailable, closeCode: 1013}
	// ErrExpired and ErrRevoked wrap ErrUnauthenticated. They are also the causes that contexts of Identity.Bound end with.
	ErrExpired error = refusal("the credentials have expired")
	ErrRevoked error = refusal("the credentials were revoked")
)

// problem is an error that a transport can tell its client of: by a code, or by closing a WebSocket.
type problem struct {
	text, code string
	closeCode  int
	kind       error // that it wraps, if any
}

func refusal(why string) *problem {
	return &problem{text: "unauthenticated: " + why, code: CodeUnauthenticated, closeCode: 4403, kind: ErrUnauthenticated}
}

func (p *problem) Error() string  { return p.text }
func (p *problem) Unwrap() error  { return p.kind }
func (p *problem) Code() string   { return p.code }
func (p *problem) CloseCode() int { return p.closeCode }

// Authenticator turns an Authorization header's value into who it stands for. The empty string means that there is none.
// What it does not understand is an ErrUnauthenticated, never a default.
type Authenticator interface {
	Authenticate(ctx context.Context, authorization string) (Identity, error)
}

// Identity is who credentials stand for, and for how long.
type Identity struct {
	Viewer  viewer.Viewer
	Expires time.Time // zero: never
	// Watch calls revoked, in its own time, once the credentials are no good any more; stop ends the watch. Nil: they
	// cannot be revoked.
	Watch func(revoked func()) (stop func())
}

// Bound returns a context that ends with the credentials: its cause is ErrExpired or ErrRevoked then. It is for what
// stays open; a single request is answered if its credentials were good when it came.
func (i Identity) Bound(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	done := func() { cancel(nil) }
	if i.Watch != nil {
		context.AfterFunc(ctx, i.Watch(func() { cancel(ErrRevoked) }))
	}
	if i.Expires.IsZero() {
		return ctx, done
	}
	ctx, release := context.WithDeadlineCause(ctx, i.Expires, ErrExpired)
	return ctx, func() { release(); done() }
}

type identityKey struct{}

// NewContext returns a context that acts for i.
func NewContext(ctx context.Context, i Identity) context.Context {
	return viewer.NewContext(context.WithValue(ctx, identityKey{}, i), i.Viewer)
}

func fromContext(ctx context.Context) (i Identity, ok bool) {
	i, ok = ctx.Value(identityKey{}).(Identity)
	return i, ok
}
