package auth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/viewer"
)

func TestBoundEndsWithTheCredentials(t *testing.T) {
	t.Parallel()
	t.Run("Expired", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := Identity{Expires: time.Now().Add(time.Millisecond)}.Bound(t.Context())
		defer cancel()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrExpired)
		require.ErrorIs(t, context.Cause(ctx), ErrUnauthenticated)
	})
	t.Run("Revoked", func(t *testing.T) {
		t.Parallel()
		var revoke func()
		stopped := make(chan struct{})
		i := Identity{Expires: time.Now().Add(time.Hour), Watch: func(revoked func()) func() {
			revoke = revoked
			return func() { close(stopped) }
		}}
		ctx, cancel := i.Bound(t.Context())
		defer cancel()
		require.NoError(t, ctx.Err())
		revoke()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrRevoked)
		<-stopped
	})
	t.Run("NeitherUntilItsParentEnds", func(t *testing.T) {
		t.Parallel()
		parent, end := context.WithCancelCause(t.Context())
		stopped := make(chan struct{})
		ctx, cancel := Identity{Watch: func(func()) func() { return func() { close(stopped) } }}.Bound(parent)
		defer cancel()
		require.NoError(t, ctx.Err())
		gone := errors.New("gone")
		end(gone)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), gone)
		<-stopped
	})
}

func TestInitIsBoundToItsCredentialsAndTheHandshake(t *testing.T) {
	t.Parallel()
	g := NewGuard(expiring{})
	ctx, err := g.Init(t.Context(), map[string]any{"Authorization": "Bearer x"})
	require.NoError(t, err)
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), ErrExpired)

	handshake, end := context.WithCancel(t.Context())
	ctx, err = NewDevGuard().Init(handshake, map[string]any{"Authorization": "Bearer dev:alice"})
	require.NoError(t, err)
	end()
	<-ctx.Done()
	require.NotErrorIs(t, context.Cause(ctx), ErrUnauthenticated)

	bound, cancel := g.Bound(NewContext(t.Context(), Identity{Expires: time.Now()}))
	defer cancel()
	<-bound.Done()
	require.ErrorIs(t, context.Cause(bound), ErrExpired)
}

// expiring takes everything, for a moment.
type expiring struct{}

func (expiring) Authenticate(context.Context, string) (Identity, error) {
	return Identity{Viewer: viewer.Viewer{Issuer: "i", Subject: "s"}, Expires: time.Now().Add(time.Millisecond)}, nil
}

// named takes every token and says that it did.
type named string

func (n named) Verify(context.Context, string) (Identity, error) {
	return Identity{Viewer: viewer.Viewer{Issuer: "i", Subject: string(n)}}, nil
}

func TestTokenTellsKeysFromJWTs(t *testing.T) {
	t.Parallel()
	both := Token{Keys: named("key"), JWT: named("jwt")}
	for header, want := range map[string]string{
		"Bearer dk_x": "key", "bearer dk_x": "key", "Bearer eyJ.a.b": "jwt", "Bearer DK_x": "jwt", "Bearer " + strings.Repeat("x", maxToken): "jwt",
	} {
		got, err := both.Authenticate(t.Context(), header)
		require.NoError(t, err, header)
		require.Equal(t, want, got.Viewer.Subject)
	}
}

func TestTokenRefuses(t *testing.T) {
	t.Parallel()
	const secret = "very-secret"
	both := Token{Keys: named("key"), JWT: named("jwt")}
	for name, c := range map[string]struct {
		token  Token
		header string
		says   string
	}{
		"Nothing":      {both, "", "Authorization: Bearer <API key or JWT>"},
		"NoToken":      {both, "Bearer ", "expected Bearer"},
		"OnlyScheme":   {both, "Bearer", "expected Bearer"},
		"OtherScheme":  {both, "Basic " + secret, "expected Bearer"},
		"NoScheme":     {both, secret, "expected Bearer"},
		"Huge":         {both, "Bearer " + strings.Repeat(secret, maxToken), "longer than 16384 bytes"},
		"KeysNotTaken": {Token{JWT: named("jwt")}, "Bearer dk_" + secret, "API keys are not taken here"},
		"JWTsNotTaken": {Token{Keys: named("key")}, "Bearer " + secret, "tokens that are no API keys are not taken here"},
		"DevIsNobody":  {Token{Keys: named("key")}, "Bearer dev:alice:operator", "not taken here"},
	} {
		got, err := c.token.Authenticate(t.Context(), c.header)
		require.ErrorIs(t, err, ErrUnauthenticated, name)
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), secret, name)
		require.Zero(t, got, name)
	}
}
