package graph

import (
	"cmp"
	"fmt"

	"entgo.io/contrib/entgql"

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
		return nil, coded(CodeBadUserInput, "a page cannot have a negative number of elements")
	case n > maxPage:
		return nil, coded(CodePageTooLarge, "a page has at most %d elements", maxPage)
	}
	return first, nil
}

// orderOf names a list and its order. A cursor is a place in one order of one list and means nothing in another.
func orderOf(list string, field fmt.Stringer, direction entgql.OrderDirection) string {
	return list + " " + field.String() + " " + string(direction)
}

func jobOrder(o *ent.JobOrder) string {
	if o == nil {
		return "jobs"
	}
	return orderOf("jobs", o.Field, o.Direction)
}

func attemptOrder(o *ent.AttemptOrder) string {
	if o == nil {
		return "attempts"
	}
	return orderOf("attempts", o.Field, o.Direction)
}

// bind writes the list and its order into a cursor that is given out, beside its value, which is nil in the default order.
func bind(order string, c *ent.Cursor) {
	c.Value = []any{order, c.Value}
}

// unbind takes the order out of cursors that came in. It refuses those of another list or order, and those that no list has
// given out: the values of an order are plain ones.
func unbind(order string, cursors ...*ent.Cursor) error {
	for _, c := range cursors {
		if c == nil {
			continue
		}
		bound, ok := c.Value.([]any)
		if !ok || len(bound) != 2 || bound[0] != order {
			return coded(CodeBadUserInput, "the cursor is not one of this list in this order")
		}
		switch bound[1].(type) {
		case []any, []byte, map[string]any, map[any]any:
			return coded(CodeBadUserInput, "the cursor is not one of this list in this order")
		}
		c.Value = bound[1]
	}
	return nil
}
