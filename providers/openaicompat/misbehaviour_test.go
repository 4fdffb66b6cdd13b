package openaicompat_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	fake "github.com/docket-gateway/docket/providers/providertest"
)

// Everything that a provider does wrong, with what the adapter makes of it, on a clock that jumps. The same list is played
// through the whole gateway in internal/acceptance.
func TestMisbehaviours(t *testing.T) {
	t.Parallel()
	kinds := map[string]providers.OutcomeKind{"SUCCEEDED": completed, "FAILED": failed, "UNKNOWN": unknown}
	for _, m := range fake.Misbehaviours(answer) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, url, dial := fake.StartPiped(t)
				server.Enqueue(m.Behave)
				p := sender(t, config(url, func(c *providers.Config) {
					c.Linger = 30 * time.Second
					for limit, short := range map[*time.Duration]time.Duration{
						&c.AckTimeout: m.Limits.Ack, &c.IdleTimeout: m.Limits.Idle, &c.TotalTimeout: m.Limits.Total,
					} {
						if short > 0 {
							*limit = short
						}
					}
				}), exchange.Options{DialContext: dial})
				r := &recorder{start: time.Now()}
				out := p.Send(t.Context(), request("model"), r)
				require.Len(t, server.Log(), 1, "one attempt is one request")
				said := strings.Join(r.said, ", ")
				require.Equal(t, !m.Silent, strings.Contains(said, "acknowledged"), said)
				require.Equal(t, m.Limits != fake.Limits{}, strings.Contains(said, "unknown"), "only time-outs leave something to listen to: %s", said)
				switch {
				case m.Breaks:
					require.Equal(t, completed, out.Kind, "%+v", out.Failure)
					require.NotEqual(t, answer, string(out.Output))
				case kinds[m.State] == completed:
					require.Equal(t, completed, out.Kind, "%+v", out.Failure)
					require.Equal(t, answer, string(out.Output)) //nolint:testifylint // byte for byte is the point
				default:
					require.Equal(t, kinds[m.State], out.Kind, "%+v", out.Failure)
					require.Equal(t, m.Code, out.Failure.Code, out.Failure.Message)
					require.False(t, out.Failure.Retryable)
					require.Nil(t, out.Output)
				}
			})
		})
	}
}
