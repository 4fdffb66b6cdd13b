package acceptance

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers/providertest"
)

// Whatever a provider does wrong, with the state that is in the database afterwards. What the adapter itself makes of the
// same list is in providers/openaicompat.
func TestMisbehaviours(t *testing.T) {
	t.Parallel()
	const printed = `{"text": "prüfen 🖨️"}`
	list := providertest.Misbehaviours(printed)
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			var more strings.Builder
			providers := map[string]string{} // by their time-outs; each one is a queue of its own
			targets := map[string]string{}
			for _, m := range list {
				f.OnModel(m.Name, m.Behave)
				total, linger := cmp.Or(2*m.Limits.Total, 2*await.Patience), 2*await.Patience // headers come within a total that is reached
				if m.State == "UNKNOWN" {                                                     // nothing comes any more
					linger = 0
				}
				limits := fmt.Sprintf("ack_timeout: %s, idle_timeout: %s, total_timeout: %s, linger: %s",
					min(total, cmp.Or(m.Limits.Ack, await.Patience)), min(total, cmp.Or(m.Limits.Idle, await.Patience)), total, linger)
				if providers[limits] == "" {
					providers[limits] = fmt.Sprintf("limits-%d", len(providers)+1)
				}
				targets[m.Name] = providers[limits] + "/" + m.Name
			}
			for limits, provider := range providers {
				fmt.Fprintf(&more, "  - {name: %s, kind: openai-compatible, base_url: %s, max_concurrency: %d, %s, models: [", provider, f.url, len(list), limits)
				for name, target := range targets {
					if strings.HasPrefix(target, provider+"/") {
						fmt.Fprintf(&more, "{name: %s}, ", name)
					}
				}
				more.WriteString("]}\n")
			}
			g := settings{database: fresh(t), url: f.url, more: more.String()}.start(t)
			ids := map[string]string{}
			for _, m := range list {
				ids[m.Name] = g.create(t, variables{
					"idempotencyKey": m.Name, "task": "echo", "input": variables{"text": "hello"}, "target": targets[m.Name], "fallbacks": []string{},
				}).ID
			}
			for _, m := range list {
				j := g.becomes(t, ids[m.Name], m.State) // there is no fallback
				require.Len(t, j.Attempts, 1, m.Name)
				a := j.last()
				require.Equal(t, m.State, a.State, m.Name)
				require.Equal(t, m.Code, a.code(), m.Name)
				if m.State == "SUCCEEDED" {
					require.JSONEq(t, printed, string(j.Result), m.Name)
				} else {
					require.Equal(t, "null", string(j.Result), m.Name)
				}
			}
			require.Len(t, f.sent(), len(list))
			f.requireOnce(t)
		})
	}
}
