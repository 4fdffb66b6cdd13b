// Package auth finds out who a request comes from and puts that viewer into its context.
//
// Of this module it imports the viewer alone.
package auth

import (
	"errors"

	"github.com/docket-gateway/docket/internal/viewer"
)

// ErrUnauthenticated is wrapped by every error about missing or malformed credentials. Its text never holds them.
var ErrUnauthenticated = errors.New("unauthenticated")

// Authenticator turns an Authorization header's value into a viewer. The empty string means that there is none. What it
// does not understand is an ErrUnauthenticated, never a default.
type Authenticator interface {
	Authenticate(authorization string) (viewer.Viewer, error)
}
