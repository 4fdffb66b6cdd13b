package acceptance

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/providertest"
)

// The primary fails, by a definite no or by a silence that its documented bound ends. The proven fallback takes over; the one
// before it on the route, whose contract was never run, is skipped, and the job's log says why.
func TestTheProvenFallbackTakesOver(t *testing.T) {
	t.Parallel()
	for database, fresh := range both {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			// What is presumed dead is found three times a lease.
			g := settings{database: fresh(t), url: f.url, lease: 15 * time.Second, more: `
  - name: mortal
    kind: openai-compatible
    base_url: ` + f.url + `
    ack_timeout: 300ms
    idle_timeout: 300ms
    total_timeout: 2s
    linger: 0s
    presume_dead_after: 1s
    models: [{name: one}]
`}.start(t)
			prove(t, g.config, "echo", second)
			for name, row := range map[string]struct {
				target, state, code string
				fails               providertest.Behaviour
			}{
				"definite 503": {primary, "FAILED", "PROVIDER_OVERLOADED", providertest.Error(http.StatusServiceUnavailable, "overloaded_error")},
				"silence":      {"mortal/one", "CANCELLED", "PRESUMED_DEAD", providertest.Hang()},
			} {
				model := strings.Split(row.target, "/")[1]
				f.OnModel(model, row.fails)
				in := intent(name)
				in["target"], in["fallbacks"] = row.target, []string{third, second}
				j := g.create(t, in)
				j = g.becomes(t, j.ID, "SUCCEEDED")
				require.Len(t, j.Attempts, 2, name)
				first, last := j.Attempts[0], j.Attempts[1]
				require.Equal(t, row.target, first.Target)
				require.Equal(t, row.state, first.State, name)
				require.Equal(t, row.code, first.Error.Code, name)
				require.Equal(t, second, last.Target)
				require.Equal(t, "FALLBACK", last.Reason)
				var skipped []event
				for _, e := range g.events(t, j.ID) {
					if e.Type == typeSkipped {
						skipped = append(skipped, e)
					}
				}
				require.Len(t, skipped, 1, name)
				require.Equal(t, third, skipped[0].Detail.Target)
				require.Equal(t, []string{"The contract of the task echo was never run at fake/third."}, skipped[0].Detail.Reasons)
			}
		})
	}
}
