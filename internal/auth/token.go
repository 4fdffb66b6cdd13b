package auth

import (
	"context"
	"fmt"
	"strings"
)

// KeyPrefix is what every API key begins with, and no JWT does.
const KeyPrefix = "dk_"

// maxToken bounds the work on a credential before anything in it is looked at.
const maxToken = 16 << 10

// Verifier knows one kind of bearer token.
type Verifier interface {
	Verify(ctx context.Context, token string) (Identity, error)
}

// Token takes `Bearer <API key>` and `Bearer <JWT>`. A kind whose verifier is nil is refused; so is a request without
// credentials.
type Token struct {
	Keys Verifier
	JWT  Verifier
}

// Authenticate implements Authenticator.
func (t Token) Authenticate(ctx context.Context, authorization string) (Identity, error) {
	if authorization == "" {
		return Identity{}, fmt.Errorf("%w: send the header Authorization: Bearer <%s>", ErrUnauthenticated, t.kinds())
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Identity{}, fmt.Errorf("%w: expected Bearer <%s>", ErrUnauthenticated, t.kinds())
	}
	if len(token) > maxToken {
		return Identity{}, fmt.Errorf("%w: the token is longer than %d bytes", ErrUnauthenticated, maxToken)
	}
	verifier, kind := t.JWT, "tokens that are no API keys"
	if strings.HasPrefix(token, KeyPrefix) {
		verifier, kind = t.Keys, "API keys"
	}
	if verifier == nil {
		return Identity{}, fmt.Errorf("%w: %s are not taken here", ErrUnauthenticated, kind)
	}
	return verifier.Verify(ctx, token)
}

func (t Token) kinds() string {
	switch {
	case t.JWT == nil:
		return "API key"
	case t.Keys == nil:
		return "JWT"
	default:
		return "API key or JWT"
	}
}
