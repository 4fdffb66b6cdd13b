package graph

import "cmp"

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
