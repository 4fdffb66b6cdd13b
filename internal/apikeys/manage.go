package apikeys

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/apikey"
	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Errors of managing keys.
var (
	ErrInvalid  = errors.New("invalid API key")
	ErrNotFound = errors.New("there is no such API key")
)

// maxNote bounds a note, in bytes.
const maxNote = 1000

// NewKey says what a key is for.
type NewKey struct {
	Issuer, Subject string // of the owner; each as auth.ValidSubject says
	Operator        bool
	Note            string    // at most 1000 bytes of UTF-8, may be empty
	Expires         time.Time // zero: never
	By              string    // who makes it, as auth.ValidSubject says
}

// Create stores a new key and returns it. It is the only moment at which the key can be seen. An error about what was
// asked for is an ErrInvalid.
func Create(ctx context.Context, c *ent.Client, n NewKey) (key string, row *ent.APIKey, err error) {
	now := time.Now()
	switch {
	case !auth.ValidSubject(n.Issuer):
		return "", nil, fmt.Errorf("%w: the issuer must be 1 to 255 bytes of printable characters", ErrInvalid)
	case !auth.ValidSubject(n.Subject):
		return "", nil, fmt.Errorf("%w: the subject must be 1 to 255 bytes of printable characters", ErrInvalid)
	case !auth.ValidSubject(n.By):
		return "", nil, fmt.Errorf("%w: who makes it must be 1 to 255 bytes of printable characters", ErrInvalid)
	case len(n.Note) > maxNote || !utf8.ValidString(n.Note) || strings.ContainsRune(n.Note, 0):
		return "", nil, fmt.Errorf("%w: the note must be text of at most %d bytes", ErrInvalid, maxNote)
	case !n.Expires.IsZero() && !n.Expires.After(now):
		return "", nil, fmt.Errorf("%w: it would have expired already", ErrInvalid)
	}
	id, key := generate()
	create := c.APIKey.Create().SetID(id).SetHash(hash(key)).SetIssuer(n.Issuer).SetSubject(n.Subject).SetOperator(n.Operator).
		SetNote(n.Note).SetCreatedBy(n.By)
	if !n.Expires.IsZero() {
		create.SetExpiresAt(n.Expires.UTC().Truncate(time.Microsecond))
	}
	row, err = create.Save(viewer.NewSystemContext(ctx))
	if err != nil {
		return "", nil, fmt.Errorf("store the API key: %w", err)
	}
	return key, row, nil
}

// Revoke ends a key for good, by its id, never by the key itself. again is true if it was revoked before; nothing is
// changed then. It is an ErrNotFound if there is no such key.
func Revoke(ctx context.Context, c *ent.Client, id, by string) (again bool, err error) {
	sys := viewer.NewSystemContext(ctx)
	n, err := c.APIKey.Update().Where(apikey.ID(id), apikey.RevokedAtIsNil()).
		SetRevokedAt(time.Now().UTC().Truncate(time.Microsecond)).SetRevokedBy(by).Save(sys)
	if err != nil {
		return false, fmt.Errorf("revoke the API key: %w", err)
	}
	if n == 1 {
		return false, nil
	}
	exists, err := c.APIKey.Query().Where(apikey.ID(id)).Exist(sys)
	if err != nil {
		return false, fmt.Errorf("read the API key: %w", err)
	}
	if !exists {
		return false, ErrNotFound
	}
	return true, nil
}
