package config

import (
	"log/slog"
	"net/url"
)

const redacted = "[redacted]"

// Secret is a value that must not be printed. Whatever prints, logs or marshals it shows [redacted]; only Reveal shows
// the value. It is behind a pointer, so that fmt, which calls no methods on unexported fields, shows an address at most.
type Secret struct{ v *string }

// NewSecret wraps s; the empty string is a secret that is not set.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{v: &s}
}

// Reveal returns the value, empty if it is not set.
func (s Secret) Reveal() string {
	if s.v == nil {
		return ""
	}
	return *s.v
}

// IsSet reports whether there is a value.
func (s Secret) IsSet() bool { return s.v != nil }

func (s Secret) String() string {
	if s.v == nil {
		return ""
	}
	return redacted
}

// GoString serves %#v.
func (s Secret) GoString() string { return `config.Secret("` + s.String() + `")` }

// LogValue serves log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText serves JSON, YAML and text encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// DSN is the database's address. It prints without its password and parameters.
type DSN struct{ v *string }

// NewDSN wraps an address.
func NewDSN(s string) DSN { return DSN{v: &s} }

// Reveal returns the whole address, with its password.
func (d DSN) Reveal() string {
	if d.v == nil {
		return ""
	}
	return *d.v
}

func (d DSN) String() string {
	u, err := url.Parse(d.Reveal())
	if err != nil {
		return redacted
	}
	if u.Scheme == "sqlite" {
		return d.Reveal()
	}
	if u.Opaque != "" {
		return redacted
	}
	// pgx takes a password from the parameters too.
	u.RawQuery, u.Fragment, u.RawFragment = "", "", ""
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String()
}

// GoString serves %#v.
func (d DSN) GoString() string { return `config.DSN("` + d.String() + `")` }

// LogValue serves log/slog.
func (d DSN) LogValue() slog.Value { return slog.StringValue(d.String()) }

// MarshalText serves JSON, YAML and text encoders.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText takes the address as it stands in the file or the environment.
func (d *DSN) UnmarshalText(b []byte) error {
	*d = NewDSN(string(b))
	return nil
}
