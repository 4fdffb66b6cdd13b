package exchange_test

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

// TestKeepsTheUsageOfWhatItStops: a loser of a race, a cancelled attempt and one that nobody waits for any more are billed too.
func TestKeepsTheUsageOfWhatItStops(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		linger time.Duration
		stop   time.Duration // 0: never
		code   string
	}{
		"ByItsCaller":          {time.Minute, 5 * time.Second, providers.CodeAborted},
		"ByItsCallerLingering": {time.Minute, 30 * time.Second, providers.CodeAborted},
		"BySilence":            {0, 0, providers.CodeIdleTimeout},
		"ByTheEndOfLinger":     {time.Minute, 0, providers.CodeIdleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				opts := options()
				opts.Linger = tc.linger
				opts.DialContext = pipe(func(c net.Conn) {
					_, _ = c.Read(make([]byte, 4096))
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na")
					_, _ = c.Read(make([]byte, 1)) // until it is closed
				})
				ctx := t.Context()
				if tc.stop > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.stop)
					defer cancel()
				}
				n := 5000
				c := call("http://127.0.0.1:1/", nil)
				c.Read = func(a exchange.Answer) (providers.Outcome, error) {
					_, err := io.ReadAll(a.Body)
					return providers.Outcome{Usage: &providers.Usage{InputTokens: &n}}, err
				}
				out := client(t, opts).Do(ctx, c, &recorder{})
				requireFailure(t, out, providers.Unknown, tc.code, false)
				require.Equal(t, &providers.Usage{InputTokens: &n}, out.Usage)
			})
		})
	}
}
