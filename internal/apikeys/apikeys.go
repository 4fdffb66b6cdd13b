// Package apikeys makes, lists, revokes and verifies API keys. A key stands for an owner, by issuer and subject; it is
// stored as a hash.
//
// Of this module it imports ent, internal/auth and internal/viewer.
package apikeys

import (
	"context"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/apikey"
	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Defaults of Options.
const (
	DefaultMaxAge    = 5 * time.Second
	DefaultUsedEvery = 10 * time.Minute
)

const (
	// maxCached bounds the memory of the cache, in keys.
	maxCached = 10_000
	// lookUpTimeout bounds a question to the database that several requests wait for.
	lookUpTimeout = 5 * time.Second
)

// Options of Keys. Zero values mean the defaults in brackets.
type Options struct {
	// MaxAge is how long a row is believed before it is read again, and how often open connections are looked at: a key
	// that is revoked is refused after so long, in every process [DefaultMaxAge].
	MaxAge time.Duration
	// UsedEvery is how often at most a key's last use is written [DefaultUsedEvery].
	UsedEvery time.Duration
	Now       func() time.Time // [time.Now]
	Logger    *slog.Logger     // [slog.Default()]
}

// Keys verifies API keys: it is an auth.Verifier. A key in use costs one read by primary key for each MaxAge, however
// many requests it comes with. It is safe for concurrent use.
type Keys struct {
	client *ent.Client
	o      Options
	flight singleflight.Group

	mu     sync.Mutex
	cached map[string]*entry
	open   map[string]map[*watch]struct{} // by key id
}

// entry is a row as it was read.
type entry struct {
	row  *ent.APIKey
	read time.Time
	// unused is set while the use of the key is to be written.
	unused atomic.Bool
}

// watch is one open connection.
type watch struct{ revoked func() }

// New returns the verifier of the keys in c's database. Run keeps an eye on open connections.
func New(c *ent.Client, o Options) *Keys {
	if o.MaxAge == 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.UsedEvery == 0 {
		o.UsedEvery = DefaultUsedEvery
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Keys{client: c, o: o, cached: map[string]*entry{}, open: map[string]map[*watch]struct{}{}}
}

// Verify implements auth.Verifier. Only who has the whole key is told that it was revoked or has expired.
func (k *Keys) Verify(ctx context.Context, key string) (auth.Identity, error) {
	id, ok := parse(key)
	if !ok {
		return auth.Identity{}, fmt.Errorf("%w: this is not an API key, or not all of it", auth.ErrUnauthenticated)
	}
	e, err := k.entry(ctx, id)
	if err != nil {
		return auth.Identity{}, err
	}
	if e == nil || subtle.ConstantTimeCompare(e.row.Hash, hash(key)) != 1 {
		return auth.Identity{}, fmt.Errorf("%w: there is no such API key", auth.ErrUnauthenticated)
	}
	if e.row.RevokedAt != nil {
		return auth.Identity{}, auth.ErrRevoked
	}
	out := auth.Identity{
		Viewer: viewer.Viewer{Issuer: e.row.Issuer, Subject: e.row.Subject, Operator: e.row.Operator},
		Watch:  func(revoked func()) func() { return k.watch(id, revoked) },
	}
	if e.row.ExpiresAt != nil {
		out.Expires = *e.row.ExpiresAt
		if !k.o.Now().Before(out.Expires) {
			return auth.Identity{}, auth.ErrExpired
		}
	}
	k.used(ctx, e)
	return out, nil
}

// entry is nil without an error if there is no such row.
func (k *Keys) entry(ctx context.Context, id string) (*entry, error) {
	k.mu.Lock()
	e := k.cached[id]
	k.mu.Unlock()
	if e != nil && k.o.Now().Sub(e.read) < k.o.MaxAge {
		return e, nil
	}
	// One read serves all who ask at this moment, also if the first of them goes away.
	found := k.flight.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
		defer cancel()
		read := k.o.Now()
		row, err := k.client.APIKey.Get(viewer.NewSystemContext(ctx), id)
		if ent.IsNotFound(err) {
			return (*entry)(nil), nil
		}
		if err != nil {
			k.o.Logger.ErrorContext(ctx, "an API key cannot be looked up", "key", id, "error", err)
			return nil, fmt.Errorf("%w: the database does not answer", auth.ErrUnavailable)
		}
		return k.remember(row, read), nil
	})
	select {
	case r := <-found:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*entry), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", auth.ErrUnavailable, ctx.Err())
	}
}

// remember caches what was read. Only rows that there are take up memory, never what a client makes up.
func (k *Keys) remember(row *ent.APIKey, read time.Time) *entry {
	e := &entry{row: row, read: read}
	e.unused.Store(row.LastUsedAt == nil || read.Sub(*row.LastUsedAt) >= k.o.UsedEvery)
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.cached) >= maxCached {
		clear(k.cached)
	}
	k.cached[row.ID] = e
	return e
}

// used writes that the key was used, if that was not written lately. A failure is no reason to refuse the request.
func (k *Keys) used(ctx context.Context, e *entry) {
	if !e.unused.CompareAndSwap(true, false) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
	defer cancel()
	now := k.o.Now().UTC().Truncate(time.Microsecond)
	err := k.client.APIKey.Update().
		Where(apikey.ID(e.row.ID), apikey.Or(apikey.LastUsedAtIsNil(), apikey.LastUsedAtLT(now.Add(-k.o.UsedEvery/2)))).
		SetLastUsedAt(now).Exec(viewer.NewSystemContext(ctx))
	if err != nil {
		k.o.Logger.WarnContext(ctx, "an API key's last use cannot be written", "key", e.row.ID, "error", err)
	}
}
