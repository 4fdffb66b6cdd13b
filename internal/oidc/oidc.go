// Package oidc verifies the JWTs of one OpenID provider: their signature by the keys that it publishes, their issuer,
// audience and times, and who they stand for.
//
// Of this module it imports internal/auth and internal/viewer.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Config says whose tokens are taken.
type Config struct {
	Issuer     string        // the claim iss, byte for byte
	JWKSURL    string        // where its keys are; empty: as its discovery document says
	Audience   []string      // one of them must be in the claim aud; at least one
	Algorithms []string      // those of signatures; at least one, none and HS* never
	Operator   Claim         // of operators; the zero value: there are none
	Leeway     time.Duration // between its clock and ours
}

// Options of a Verifier. Zero values mean the defaults in brackets.
type Options struct {
	Timeout      time.Duration // for one answer of the provider [5s]
	RefreshEvery time.Duration // how long a key that it has withdrawn may still be believed [5m]
	UnknownEvery time.Duration // how often at most its keys are fetched because a token names another one [10s]
	RetryAtMost  time.Duration // between tries while there are no keys yet [10s]
	Now          func() time.Time
	Logger       *slog.Logger
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&o.Timeout, 5 * time.Second}, {&o.RefreshEvery, 5 * time.Minute}, {&o.UnknownEvery, 10 * time.Second}, {&o.RetryAtMost, 10 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Verifier is an auth.Verifier. Until Run has the provider's keys, every token is an auth.ErrUnavailable. It is safe for
// concurrent use.
type Verifier struct {
	c      Config
	o      Options
	parser *jwt.Parser
	keys   atomic.Pointer[keys]
	tried  chan struct{}
}

// New returns a verifier without keys; see Run. An algorithm that is not asymmetric is an error, and so is no audience:
// tokens for others would be taken.
func New(c Config, o Options) (*Verifier, error) {
	o = o.withDefaults()
	if len(c.Audience) == 0 || slices.Contains(c.Audience, "") {
		return nil, errors.New("tokens need an audience")
	}
	for _, a := range c.Algorithms {
		switch jwt.GetSigningMethod(a).(type) {
		case *jwt.SigningMethodRSA, *jwt.SigningMethodRSAPSS, *jwt.SigningMethodECDSA, *jwt.SigningMethodEd25519:
		default:
			return nil, fmt.Errorf("%q is no algorithm of signatures by public keys", a)
		}
	}
	if c.Issuer == "" || len(c.Algorithms) == 0 {
		return nil, errors.New("tokens need an issuer and an algorithm")
	}
	return &Verifier{c: c, o: o, tried: make(chan struct{}), parser: jwt.NewParser(
		jwt.WithValidMethods(c.Algorithms), jwt.WithIssuer(c.Issuer), jwt.WithAudience(c.Audience...), jwt.WithExpirationRequired(),
		jwt.WithLeeway(c.Leeway), jwt.WithTimeFunc(o.Now), jwt.WithStrictDecoding(),
	)}, nil
}

// Tried is closed once the provider was asked for its keys a first time, with whatever success.
func (v *Verifier) Tried() <-chan struct{} { return v.tried }

// Errors that come out of the look-up of a token's key.
var (
	errCritical  = errors.New("the token has a critical header that is not known")
	errIssuer    = errors.New("the token is another issuer's")
	errNoSuchKey = errors.New("the issuer publishes no such key")
)

// Verify implements auth.Verifier. Its errors say which rule a token breaks and nothing that is in it.
func (v *Verifier) Verify(ctx context.Context, token string) (auth.Identity, error) {
	keys := v.keys.Load()
	if keys == nil {
		return auth.Identity{}, fmt.Errorf("%w: the issuer's keys are not known yet", auth.ErrUnavailable)
	}
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) { return v.key(ctx, keys, t) })
	if err != nil {
		return auth.Identity{}, refusal(err)
	}
	subject, err := claims.GetSubject()
	if err != nil || !auth.ValidSubject(subject) {
		return auth.Identity{}, fmt.Errorf("%w: the token's subject is missing or is not 1 to 255 printable characters", auth.ErrUnauthenticated)
	}
	expires, err := claims.GetExpirationTime()
	if err != nil || expires == nil { // the parser has seen to it
		return auth.Identity{}, fmt.Errorf("%w: the token does not say when it expires", auth.ErrUnauthenticated)
	}
	return auth.Identity{
		Viewer:  viewer.Viewer{Issuer: v.c.Issuer, Subject: subject, Operator: v.c.Operator.in(claims)},
		Expires: expires.Add(v.c.Leeway),
	}, nil
}

// key finds the key of a token whose algorithm is allowed. What is surely refused costs the issuer no request.
func (v *Verifier) key(ctx context.Context, keys *keys, t *jwt.Token) (any, error) {
	if _, has := t.Header["crit"]; has {
		return nil, errCritical
	}
	if issuer, err := t.Claims.GetIssuer(); err != nil || issuer != v.c.Issuer {
		return nil, errIssuer
	}
	key, err := keys.find.KeyfuncCtx(ctx)(t)
	if errors.Is(err, jwkset.ErrKeyNotFound) && !errors.Is(err, auth.ErrUnavailable) {
		return nil, errNoSuchKey
	}
	return key, err
}

// refusal tells what is wrong with a token in words of ours: those of the library may hold parts of it.
func refusal(err error) error {
	because := "the token is malformed"
	switch {
	case errors.Is(err, auth.ErrUnavailable):
		return fmt.Errorf("%w: the issuer's keys cannot be fetched", auth.ErrUnavailable)
	case errors.Is(err, jwt.ErrTokenMalformed):
	case errors.Is(err, errCritical), errors.Is(err, errIssuer), errors.Is(err, errNoSuchKey):
		for _, known := range []error{errCritical, errIssuer, errNoSuchKey} {
			if errors.Is(err, known) {
				because = known.Error()
			}
		}
	case errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, jwt.ErrTokenUnverifiable):
		because = "the token's signature is not valid, or its algorithm is not allowed"
	case errors.Is(err, jwt.ErrTokenExpired):
		return auth.ErrExpired
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		because = "the token is not valid yet"
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		because = "the token is for another audience"
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		because = "the token lacks one of the claims iss, aud and exp"
	}
	return fmt.Errorf("%w: %s", auth.ErrUnauthenticated, because)
}
