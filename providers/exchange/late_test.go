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

// lateHandles is a recorder that takes late acknowledgements too.
type lateHandles struct {
	recorder
	late []providers.Acknowledgement
}

func (h *lateHandles) AcknowledgedLate(a providers.Acknowledgement) {
	h.note("acknowledged late")
	h.late = append(h.late, a)
}

// A handle is what an attempt is settled by that nobody can tell about, so it is told whenever it comes.
func TestAHandleThatComesLateIsTold(t *testing.T) {
	t.Parallel()
	late := []string{"unknown ACK_TIMEOUT", "acknowledged late"}
	for name, tc := range map[string]struct {
		after  time.Duration // of the handle; 0: when the request is stopped
		stays  bool          // the connection, else it breaks
		linger time.Duration
		stop   time.Duration // 0: nobody stops it
		said   []string
		code   string
	}{
		"InTheLinger":           {after: 12 * time.Second, linger: time.Minute, said: late, code: providers.CodeAckTimeout},
		"AndThenSilence":        {after: 12 * time.Second, stays: true, linger: 30 * time.Second, said: late, code: providers.CodeAckTimeout},
		"AsTheLingerEnds":       {stays: true, linger: 5 * time.Second, said: late, code: providers.CodeAckTimeout},
		"AsItEndsWithoutLinger": {stays: true, said: late, code: providers.CodeAckTimeout},
		"AsItIsStopped":         {stays: true, linger: time.Minute, stop: 3 * time.Second, said: []string{"acknowledged"}, code: providers.CodeAborted},
		"AsTheLingerIsStopped":  {stays: true, linger: time.Minute, stop: 15 * time.Second, said: late, code: providers.CodeAborted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				opts := options()
				opts.Linger = tc.linger
				opts.DialContext = pipe(func(c net.Conn) {
					_, _ = c.Read(make([]byte, 4096))
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Request-Id: r1\r\nContent-Length: 3\r\n\r\n")
					if tc.after > 0 {
						<-time.After(tc.after)
						_, _ = io.WriteString(c, "a")
					}
					if tc.stays {
						swallow(c)
					}
				})
				c := call("http://127.0.0.1:1/", nil)
				c.HandleInBody = true
				c.Read = func(a exchange.Answer) (providers.Outcome, error) {
					_, err := a.Body.Read(make([]byte, 1)) // or until it is stopped: the handle is there at that very moment
					a.Acknowledge("h1")
					if err == nil {
						_, err = io.ReadAll(a.Body)
					}
					return providers.Outcome{Kind: providers.Completed}, err
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.stop > 0 {
					defer time.AfterFunc(tc.stop, cancel).Stop()
				}
				r := &lateHandles{}
				out := client(t, opts).Do(ctx, c, r)
				requireFailure(t, out, providers.Unknown, tc.code, false)
				require.Equal(t, tc.said, r.said)
				require.Equal(t, "r1", out.ProviderRequestID)
				if len(tc.said) == 2 {
					require.Equal(t, []providers.Acknowledgement{{ProviderRequestID: "r1", Handle: "h1"}}, r.late)
				}
			})
		})
	}
}
