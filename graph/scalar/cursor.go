package scalar

import (
	"errors"

	"entgo.io/contrib/entgql"
	"github.com/99designs/gqlgen/graphql"
)

// MarshalCursor writes a cursor as entgql does.
func MarshalCursor(c entgql.Cursor[string]) graphql.Marshaler { return c }

// UnmarshalCursor reads a cursor. What is none is told in words of its own: the decoder's are about its format, which is nobody
// else's business.
func UnmarshalCursor(v any) (c entgql.Cursor[string], err error) {
	if c.UnmarshalGQL(v) != nil {
		return c, errors.New("the cursor is not one that this server gave out")
	}
	return c, nil
}
