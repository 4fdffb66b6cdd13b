package graph

import (
	"cmp"

	"github.com/docket-gateway/docket/ent"
)

// Sizes of pages. Whoever wants more asks again with a cursor.
const (
	defaultPage = 50
	maxPage     = 200
	maxNodes    = 100

	defaultEvents = 100
	maxEvents     = 1000
)

// pageSize checks the size that is asked for and sets the default one.
func pageSize(first, last *int) (*int, error) {
	switch {
	case first != nil && last != nil:
		return nil, coded(CodeBadUserInput, "give first or last, not both")
	case first == nil && last == nil:
		n := defaultPage
		return &n, nil
	}
	n := *cmp.Or(first, last)
	switch {
	case n < 0:
		return nil, coded(CodeBadUserInput, "a page cannot have %d elements", n)
	case n > maxPage:
		return nil, coded(CodePageTooLarge, "a page has at most %d elements", maxPage)
	}
	return first, nil
}

// checkCursors refuses cursors that no list has given out: the values of an order are plain ones.
func checkCursors(cursors ...*ent.Cursor) error {
	for _, c := range cursors {
		if c == nil {
			continue
		}
		switch c.Value.(type) {
		case []any, []byte, map[string]any, map[any]any:
			return coded(CodeBadUserInput, "the cursor is not one of this list")
		}
	}
	return nil
}
