package openaicompat_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	fake "github.com/docket-gateway/docket/providers/providertest"
)

// The rows of the outcome table that are about time, on a clock that jumps: the time-outs are the defaults.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		behave fake.Behaviour
		change func(*providers.Config)
		kind   providers.OutcomeKind
		code   string
		said   []string
		end    time.Duration
	}{
		"NoAcknowledgement": {fake.Hang(), nil, unknown, providers.CodeAckTimeout, []string{"unknown ACK_TIMEOUT 10s"}, 130 * time.Second},
		"NoLinger":          {fake.Hang(), func(c *providers.Config) { c.Linger = 0 }, unknown, providers.CodeAckTimeout, []string{"unknown ACK_TIMEOUT 10s"}, 10 * time.Second},
		"FirstTokenThenSilence": {fake.AckThenSilent(), nil, unknown, providers.CodeIdleTimeout,
			[]string{"acknowledged 0s", "unknown IDLE_TIMEOUT 20s"}, 140 * time.Second},
		"DripUntilTheAbsoluteDeadline": {fake.Drip(time.Second), func(c *providers.Config) { c.TotalTimeout, c.Linger = 20500*time.Millisecond, 0 },
			unknown, providers.CodeTotalTimeout, []string{"acknowledged 0s", "unknown TOTAL_TIMEOUT 20.5s"}, 20500 * time.Millisecond},
		"DripThroughTheLinger": {fake.Drip(time.Second), func(c *providers.Config) { c.TotalTimeout, c.Linger = 20500*time.Millisecond, 5*time.Second },
			unknown, providers.CodeTotalTimeout, []string{"acknowledged 0s", "unknown TOTAL_TIMEOUT 20.5s"}, 25500 * time.Millisecond},
		"CommentsAreSignsOfLife": {func(x *fake.Exchange) {
			x.Headers()
			for range 5 {
				x.Pause(15 * time.Second)
				x.Write(": still here\n\n")
			}
			x.Content("{}")
			x.Finish("stop", 1)
		}, nil, completed, "", []string{"acknowledged 0s"}, 75 * time.Second},
		"LateAnswer":     {fake.Slow(15 * time.Second), nil, completed, "", []string{"unknown ACK_TIMEOUT 10s"}, 15 * time.Second},
		"LateRejection":  {later(fake.Error(429, "fake")), nil, failed, providers.CodeRateLimited, []string{"unknown ACK_TIMEOUT 10s"}, 15 * time.Second},
		"LateGateway":    {later(fake.HTML(504)), nil, unknown, providers.CodeAckTimeout, []string{"unknown ACK_TIMEOUT 10s"}, 15 * time.Second},
		"LostInLinger":   {later(fake.Drop()), nil, unknown, providers.CodeAckTimeout, []string{"unknown ACK_TIMEOUT 10s"}, 15 * time.Second},
		"LateCutInTwo":   {later(fake.CutAfter(2)), nil, unknown, providers.CodeAckTimeout, []string{"unknown ACK_TIMEOUT 10s"}, 15 * time.Second},
		"StalledError":   {stalled(401), nil, failed, providers.CodeUnauthorized, nil, 20 * time.Second},
		"Stalled500":     {stalled(500), nil, unknown, providers.CodeGateway, nil, 20 * time.Second},
		"SlowButInTime":  {fake.Slow(9 * time.Second), nil, completed, "", []string{"acknowledged 9s"}, 9 * time.Second},
		"SilenceInABody": {func(x *fake.Exchange) { x.Respond(200, "application/json", `{"choices":`); x.Write(" "); x.Until(nil) }, nil, unknown, providers.CodeIdleTimeout, []string{"acknowledged 0s", "unknown IDLE_TIMEOUT 20s"}, 140 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, url, dial := fake.StartPiped(t)
				server.Enqueue(tc.behave)
				p := sender(t, config(url, func(c *providers.Config) {
					c.AckTimeout, c.IdleTimeout = providers.DefaultAckTimeout, providers.DefaultIdleTimeout
					c.TotalTimeout, c.Linger = providers.DefaultTotalTimeout, providers.DefaultLinger
					if tc.change != nil {
						tc.change(c)
					}
				}), exchange.Options{DialContext: dial})
				r := &recorder{start: time.Now()}
				out := p.Send(t.Context(), request("model"), r)
				require.Equal(t, tc.kind, out.Kind, "%+v", out.Failure)
				if tc.kind != completed {
					require.Equal(t, tc.code, out.Failure.Code, out.Failure.Message)
				}
				require.Equal(t, tc.said, r.said)
				require.Equal(t, tc.end, time.Since(r.start))
				require.Len(t, server.Log(), 1)
			})
		})
	}
}

func later(b fake.Behaviour) fake.Behaviour {
	return func(x *fake.Exchange) {
		if x.Pause(15 * time.Second) {
			b(x)
		}
	}
}

// stalled sends an error status and the beginning of a body.
func stalled(status int) fake.Behaviour {
	return func(x *fake.Exchange) {
		x.Respond(status, "application/json", `{"error":`)
		x.Write("{")
		x.Until(nil)
	}
}

func TestSlowReporterIsNotTheProvidersSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, url, dial := fake.StartPiped(t)
		server.Enqueue(fake.OK())
		p := sender(t, config(url, func(c *providers.Config) { c.IdleTimeout, c.TotalTimeout = time.Second, time.Minute }), exchange.Options{DialContext: dial})
		r := &recorder{start: time.Now(), on: func(string) { <-time.After(30 * time.Second) }}
		out := p.Send(t.Context(), request("model"), r)
		require.Equal(t, completed, out.Kind, "%+v", out.Failure)
	})
}

func TestAbort(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		behave fake.Behaviour
		when   time.Duration
		said   []string
	}{
		"AfterTheRequestWasWritten": {fake.Hang(), 5 * time.Second, nil},
		"InTheStream":               {fake.AckThenSilent(), 5 * time.Second, []string{"acknowledged 0s"}},
		"InTheLinger":               {fake.Hang(), 50 * time.Second, []string{"unknown ACK_TIMEOUT 20s"}},
		"InAnErrorBody":             {stalled(500), 5 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, url, dial := fake.StartPiped(t)
				server.Enqueue(tc.behave)
				p := sender(t, config(url, func(c *providers.Config) { c.Linger = time.Minute }), exchange.Options{DialContext: dial})
				ctx, cancel := context.WithTimeout(t.Context(), tc.when)
				defer cancel()
				r := &recorder{start: time.Now()}
				out := p.Send(ctx, request("model"), r)
				require.Equal(t, unknown, out.Kind)
				require.Equal(t, providers.CodeAborted, out.Failure.Code)
				require.Equal(t, tc.said, r.said)
				require.Equal(t, tc.when, time.Since(r.start))
			})
		})
	}
}

// The end by our own context is told as such, also when the broken connection is noticed at the same moment.
func TestAbortIsNotTakenForALostConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, url, dial := fake.StartPiped(t)
		server.OnModel("model", fake.AckThenSilent())
		p := sender(t, config(url, nil), exchange.Options{DialContext: dial})
		for range 30 {
			ctx, cancel := context.WithCancel(t.Context())
			r := &recorder{start: time.Now(), on: func(string) { // in Acknowledged: Send cannot look meanwhile
				cancel()
				synctest.Wait()
			}}
			out := p.Send(ctx, request("model"), r)
			require.Equal(t, unknown, out.Kind)
			require.Equal(t, providers.CodeAborted, out.Failure.Code)
		}
	})
}
