package scalar

import (
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// MarshalTime writes RFC 3339 in UTC, wherever the server stands: databases give times back in the process's own zone.
func MarshalTime(t time.Time) graphql.Marshaler { return graphql.MarshalTime(t.UTC()) }

// UnmarshalTime reads RFC 3339 with any offset.
func UnmarshalTime(v any) (time.Time, error) { return graphql.UnmarshalTime(v) }
