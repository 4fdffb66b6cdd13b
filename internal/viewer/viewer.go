// Package viewer says on whose behalf a context acts. The privacy policies in ent/schema decide by it; without a viewer
// every query and mutation is denied.
//
// It imports nothing of this module.
package viewer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Viewer is an authenticated principal, or the system itself.
type Viewer struct {
	Issuer   string
	Subject  string
	Operator bool

	system bool
}

// OwnerID is the owner row's id, derived from issuer and subject alone, so that every replica, device and token of one
// principal meets the same owner without a look-up.
func (v Viewer) OwnerID() string {
	h := sha256.New()
	var n [8]byte
	for _, s := range []string{v.Issuer, v.Subject} {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return "own_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// System reports whether the viewer is a worker, a sweeper or a command rather than a person.
func (v Viewer) System() bool { return v.system }

// SeesAll reports whether the viewer may read and act on every owner's jobs.
func (v Viewer) SeesAll() bool { return v.system || v.Operator }

type key struct{}

// NewContext returns a context that acts on behalf of v.
func NewContext(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, key{}, v)
}

// NewSystemContext returns a context that acts for Docket itself. Requests never get one.
func NewSystemContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, Viewer{Issuer: "docket", Subject: "system", system: true})
}

// FromContext returns the context's viewer; ok is false if there is none.
func FromContext(ctx context.Context) (v Viewer, ok bool) {
	v, ok = ctx.Value(key{}).(Viewer)
	return v, ok
}
