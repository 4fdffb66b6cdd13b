package oidc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/docket-gateway/docket/internal/auth"
)

// keys are the provider's, as they were fetched last.
type keys struct {
	find keyfunc.Keyfunc
}

// Run fetches the provider's keys, tries again while it does not answer, and keeps them fresh, until ctx is done.
func (v *Verifier) Run(ctx context.Context) {
	again := backoff.NewExponentialBackOff()
	again.InitialInterval, again.MaxInterval = min(again.InitialInterval, v.o.RetryAtMost), v.o.RetryAtMost
	first := true
	got, err := backoff.Retry(ctx, func() (*keys, error) {
		k, err := v.fetch(ctx)
		if first && err != nil {
			close(v.tried)
		}
		if err != nil {
			first = false
		}
		return k, err
	}, backoff.WithBackOff(again), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, after time.Duration) {
		v.o.Logger.WarnContext(ctx, "the keys of auth.jwt.issuer cannot be fetched; until then every JWT is refused",
			"issuer", v.c.Issuer, "error", err, "again_in", after)
	}))
	if err != nil {
		return // ctx is done
	}
	v.keys.Store(got)
	if first {
		close(v.tried)
	} else {
		v.o.Logger.InfoContext(ctx, "the keys of auth.jwt.issuer are there", "issuer", v.c.Issuer)
	}
	<-ctx.Done()
}

// fetch finds the keys and starts to keep them fresh, until ctx is done.
func (v *Verifier) fetch(ctx context.Context) (_ *keys, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if err != nil { // the library refreshes also what it could not fetch
			cancel()
		}
	}()
	client := newClient(v.o.Timeout)
	url := v.c.JWKSURL
	if url == "" {
		if url, err = discover(ctx, client, v.c.Issuer); err != nil {
			return nil, err
		}
	}
	s := &storage{}
	note := func(ctx context.Context, err error) {
		s.failed.Store(true)
		if ctx.Err() == nil || !errors.Is(ctx.Err(), context.Canceled) {
			v.o.Logger.WarnContext(ctx, "the keys of auth.jwt.issuer cannot be fetched anew; the known ones stay good", "issuer", v.c.Issuer, "error", err)
		}
	}
	known, err := jwkset.NewStorageFromHTTP(url, jwkset.HTTPClientStorageOptions{
		Client: client, Ctx: ctx, HTTPTimeout: v.o.Timeout, RefreshInterval: v.o.RefreshEvery, RefreshErrorHandler: note, Storage: &replaced{s: s},
	})
	if err != nil {
		return nil, err
	}
	s.known = known
	s.Storage, err = jwkset.NewHTTPClient(jwkset.HTTPClientOptions{
		HTTPURLs: map[string]jwkset.Storage{url: known},
		// The time for waiting and fetching together: who would have to wait longer is told so at once.
		RateLimitWaitMax: v.o.Timeout, RefreshUnknownKID: rate.NewLimiter(rate.Every(v.o.UnknownEvery), 1),
	})
	if err != nil {
		return nil, err
	}
	find, err := keyfunc.New(keyfunc.Options{Ctx: ctx, Storage: s, UseWhitelist: []jwkset.USE{"", jwkset.UseSig}})
	if err != nil {
		return nil, err
	}
	return &keys{find: find}, nil
}

// storage lets the look-ups of one unknown key share one fetch, and tells a key that is not published from one that
// nobody can ask for now.
type storage struct {
	jwkset.Storage // fetches for an unknown key

	known  jwkset.Storage // does not
	failed atomic.Bool    // the last fetch
	flight singleflight.Group
}

// KeyRead is an auth.ErrUnavailable if the key may be there and cannot be fetched.
func (s *storage) KeyRead(ctx context.Context, kid string) (jwkset.JWK, error) {
	key, err := s.known.KeyRead(ctx, kid)
	if err == nil {
		return key, nil
	}
	found, err, _ := s.flight.Do(kid, func() (any, error) {
		// A client that goes away must not end what others wait for.
		key, err := s.Storage.KeyRead(context.WithoutCancel(ctx), kid)
		if errors.Is(err, jwkset.ErrKeyNotFound) && !s.failed.Load() {
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", auth.ErrUnavailable, err)
		}
		return key, nil
	})
	if err != nil {
		return jwkset.JWK{}, err
	}
	return found.(jwkset.JWK), nil
}

// replaced is the memory of the keys. That they are replaced means that a fetch went well.
type replaced struct {
	jwkset.MemoryJWKSet

	s *storage
}

// KeyReplaceAll implements jwkset.Storage.
func (r *replaced) KeyReplaceAll(ctx context.Context, given []jwkset.JWK) error {
	r.s.failed.Store(false)
	return r.MemoryJWKSet.KeyReplaceAll(ctx, given)
}
