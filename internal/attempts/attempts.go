// Package attempts is the commands of operators on attempts: to list them, and to settle many at once after a provider's
// outage. It moves no state: each attempt goes through internal/jobs, by the same guarded move as its worker, in a
// transaction of its own.
//
// It imports ent, internal/auth, internal/jobs and internal/viewer.
package attempts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/predicate"
	"github.com/docket-gateway/docket/internal/viewer"
)

// Exit codes.
const (
	ExitOK       = 0 // all that were found were settled, or listed
	ExitPartly   = 1 // somebody else was first at some, or some failed
	ExitUnusable = 2 // the command could not do its work
)

// page is how many rows are read at a time.
const page = 500

// ErrUsage is wrapped by errors about what a command was asked for.
var ErrUsage = errors.New("the command was not understood")

// Streams are where a command writes.
type Streams struct{ Out, Err io.Writer }

// operator acts in the name of whoever runs the command. Its issuer is Docket's own: it is no owner's.
func operator(ctx context.Context, subject string) context.Context {
	return viewer.NewContext(ctx, viewer.Viewer{Issuer: "docket", Subject: subject, Operator: true})
}

// Window is a time span of sent_at. A zero end is open; with both open, attempts without a sent_at are in it too.
type Window struct {
	Since time.Time // inclusive
	Until time.Time // exclusive
}

// ParseTime reads RFC 3339, or a duration such as 2h that is taken back from now. Empty is the zero time.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		if d < 0 {
			return time.Time{}, fmt.Errorf("%w: %q is in the future; 2h is two hours ago", ErrUsage, text)
		}
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %q is neither a time such as 2026-03-14T09:00:00Z nor a duration such as 2h", ErrUsage, text)
	}
	return t.UTC(), nil
}

func (w Window) check() error {
	if !w.Since.IsZero() && !w.Until.IsZero() && !w.Since.Before(w.Until) {
		return fmt.Errorf("%w: nothing is between %s and %s", ErrUsage, w.Since.Format(time.RFC3339), w.Until.Format(time.RFC3339))
	}
	return nil
}

func (w Window) predicates() []predicate.Attempt {
	var ps []predicate.Attempt
	if !w.Since.IsZero() {
		ps = append(ps, attempt.SentAtGTE(w.Since.UTC()))
	}
	if !w.Until.IsZero() {
		ps = append(ps, attempt.SentAtLT(w.Until.UTC()))
	}
	return ps
}

// ofProvider matches every target of a provider; empty is every provider. A provider's name holds no slash.
func ofProvider(name string) []predicate.Attempt {
	if name == "" {
		return nil
	}
	return []predicate.Attempt{attempt.TargetHasPrefix(name + "/")}
}

func checkProvider(name string) error {
	if strings.Contains(name, "/") {
		return fmt.Errorf("%w: --provider is the first part of a target, without a model", ErrUsage)
	}
	return nil
}

// each reads attempts in order of id, a page at a time, at most limit (0: all).
func each(ctx context.Context, c *ent.Client, limit int, where []predicate.Attempt, f func(*ent.Attempt) error) error {
	last := ""
	for n := 0; limit == 0 || n < limit; {
		size := page
		if limit > 0 {
			size = min(size, limit-n)
		}
		as, err := c.Attempt.Query().Where(where...).Where(attempt.IDGT(last)).Order(ent.Asc(attempt.FieldID)).Limit(size).All(ctx)
		if err != nil {
			return fmt.Errorf("read attempts: %w", err)
		}
		for _, a := range as {
			if err := f(a); err != nil {
				return err
			}
			last = a.ID
		}
		n += len(as)
		if len(as) < size {
			return nil
		}
	}
	return nil
}

func stamp(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func orDash(s *string) string {
	if s == nil || *s == "" {
		return "-"
	}
	return *s
}
