package acceptance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a list is asked for means the same on every database.
func TestListsMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, _ := newGateway(t, settings{database: fresh(t)})
			for i := range 3 {
				g.becomes(t, g.create(t, intent(fmt.Sprint(i))).ID, "SUCCEEDED")
			}
			type list struct {
				TotalCount int
				Edges      []struct {
					Cursor string
					Node   struct{ ID string }
				}
			}
			for where, n := range map[string]int{
				`{}`: 3, `{stateIn: []}`: 0, `{createdAtIn: []}`: 0, `{not: {stateIn: []}}`: 3, `{stateNotIn: []}`: 3,
				`{or: [{idIn: []}, {idempotencyKey: "1"}]}`: 1, `{hasAttemptsWith: [{numberIn: []}]}`: 0,
				`{or: []}`: 0, `{and: []}`: 3, `{hasAttemptsWith: []}`: 3, `{hasAttemptsWith: [{finishedAtIsNil: false}]}`: 3,
				`{hasAttemptsWith: [{finishedAtNotNil: false}]}`: 0,
			} {
				require.Equal(t, n, field[list](t, g.client, "jobs", `{jobs(where: `+where+`){totalCount}}`, nil).TotalCount, where)
			}
			for _, order := range []string{"CREATED_AT", "UPDATED_AT", "STATE"} {
				seen, after := map[string]bool{}, ""
				for range 3 {
					page := field[list](t, g.client, "jobs", `{jobs(first: 1 `+after+` orderBy: {field: `+order+`, direction: DESC}){edges{cursor node{id}}}}`, nil)
					require.Len(t, page.Edges, 1, order)
					seen[page.Edges[0].Node.ID] = true
					after = `after: "` + page.Edges[0].Cursor + `"`
				}
				require.Len(t, seen, 3, order)
				res := g.post(t, `{jobs(first: 1 `+after+`){totalCount}}`, nil)
				require.Equal(t, []string{"BAD_USER_INPUT"}, res.codes(), order)
			}
		})
	}
}
