package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"time"

	"github.com/dustin/go-humanize"
)

// Bytes is a size: 1MiB, 256KiB, 1MB (a million) or a plain number of bytes.
type Bytes int64

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 {
		return fmt.Errorf("%q is not a size such as 1MiB, 256KiB or 4096", text)
	}
	*b = Bytes(n)
	return nil
}

// MarshalText writes a size that UnmarshalText reads back.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b Bytes) String() string {
	for _, u := range []struct {
		n    Bytes
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b >= u.n && b%u.n == 0 {
			return fmt.Sprintf("%d%s", b/u.n, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(b))
}

// Price is an exact decimal number in plain notation, kept as it was written: 0.15 never passes through a double. It is
// empty if no price is known.
type Price string

var pricePattern = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,12})?$`)

// UnmarshalText reads a price.
func (p *Price) UnmarshalText(text []byte) error {
	if !pricePattern.Match(text) {
		return fmt.Errorf("%q is not a plain decimal number such as 0.15", text)
	}
	*p = Price(text)
	return nil
}

// parseDuration wants a unit: a bare number would be nanoseconds to Go and seconds to its writer.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 500ms, 15s or 2m", text)
	}
	if d < 0 {
		return 0, errors.New("must not be negative")
	}
	return d, nil
}

// Choice is true, false, or left to a default that depends on something else.
type Choice string

// UnmarshalText takes true and false.
func (c *Choice) UnmarshalText(text []byte) error {
	if s := string(text); s != "true" && s != "false" {
		return errors.New("must be true or false")
	}
	*c = Choice(text)
	return nil
}

// Or returns the choice, or the default if there is none.
func (c Choice) Or(byDefault bool) bool {
	if c == "" {
		return byDefault
	}
	return c == "true"
}
