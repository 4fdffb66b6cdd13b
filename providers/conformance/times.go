package conformance

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/providertest"
)

// later is b after 15 seconds without a sign of life.
func later(b providertest.Behaviour) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		if x.Pause(15 * time.Second) {
			b(x)
		}
	}
}

// times has the rows of the outcome table that are about time.
func times(t *testing.T, a Adapter) {
	f := a.Fake
	noLinger := func(c *providers.Config) { c.Linger = 0 }
	ackFirst := []string{"unknown ACK_TIMEOUT 10s"}
	for name, tc := range map[string]struct {
		behave providertest.Behaviour
		change func(*providers.Config)
		kind   providers.OutcomeKind
		code   string
		said   []string
		end    time.Duration
	}{
		"NoAcknowledgement": {providertest.Hang(), nil, unknown, providers.CodeAckTimeout, ackFirst, 130 * time.Second},
		"NoLinger":          {providertest.Hang(), noLinger, unknown, providers.CodeAckTimeout, ackFirst, 10 * time.Second},
		"Silence": {f.Starts, nil, unknown, providers.CodeIdleTimeout,
			[]string{"acknowledged 0s", "unknown IDLE_TIMEOUT 20s"}, 140 * time.Second},
		"TotalTime": {f.Starts, func(c *providers.Config) { c.TotalTimeout, c.Linger = 15*time.Second, 0 }, unknown, providers.CodeTotalTimeout,
			[]string{"acknowledged 0s", "unknown TOTAL_TIMEOUT 15s"}, 15 * time.Second},
		"SlowButInTime": {func(x *providertest.Exchange) { x.Pause(9 * time.Second); f.Says(Output)(x) }, nil, completed, "",
			[]string{"acknowledged 9s"}, 9 * time.Second},
		"LateAnswer":    {later(f.Says(Output)), nil, completed, "", ackFirst, 15 * time.Second},
		"LateRefusal":   {later(f.Refuses), nil, failed, providers.CodeRefused, ackFirst, 15 * time.Second},
		"LateRejection": {later(f.Error(400, "fake")), nil, failed, providers.CodeBadRequest, ackFirst, 15 * time.Second},
		"LateGateway":   {later(providertest.HTML(504)), nil, unknown, providers.CodeAckTimeout, ackFirst, 15 * time.Second},
		"LateCut":       {later(f.Cut), nil, unknown, providers.CodeAckTimeout, ackFirst, 15 * time.Second},
		"LostInLinger":  {later(providertest.Drop()), nil, unknown, providers.CodeAckTimeout, ackFirst, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Bubble(t, a, tc.change, func(t *testing.T, b *Bundle) {
				b.Server.Enqueue(tc.behave)
				start := time.Now()
				out := b.Sender.Send(t.Context(), Request(), b.Recorder)
				require.Equal(t, tc.kind, out.Kind, "%+v", out.Failure)
				if tc.kind != completed {
					require.Equal(t, tc.code, out.Failure.Code, out.Failure.Message)
				}
				require.Equal(t, tc.said, b.Recorder.Said)
				require.Equal(t, tc.end, time.Since(start))
				require.Len(t, b.Server.Log(), 1, "one attempt is one request")
			})
		})
	}
	t.Run("Abort", func(t *testing.T) {
		t.Parallel()
		for _, behave := range []providertest.Behaviour{providertest.Hang(), f.Starts} {
			Bubble(t, a, nil, func(t *testing.T, b *Bundle) {
				b.Server.Enqueue(behave)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				start := time.Now()
				out := b.Sender.Send(ctx, Request(), b.Recorder)
				require.Equal(t, unknown, out.Kind)
				require.Equal(t, providers.CodeAborted, out.Failure.Code)
				require.Equal(t, 5*time.Second, time.Since(start))
			})
		}
	})
	t.Run("AbortBeforeAnythingIsSent", func(t *testing.T) {
		t.Parallel()
		Bubble(t, a, nil, func(t *testing.T, b *Bundle) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			out := b.Sender.Send(ctx, Request(), b.Recorder)
			require.Equal(t, failed, out.Kind)
			require.Equal(t, providers.CodeAborted, out.Failure.Code)
			require.Empty(t, b.Server.Log())
		})
	})
	t.Run("SlowReporterIsNotSilence", func(t *testing.T) {
		t.Parallel()
		Bubble(t, a, nil, func(t *testing.T, b *Bundle) {
			b.Server.Enqueue(f.Says(Output))
			b.Recorder.On = func(string) {
				<-time.After(50 * time.Second)
				synctest.Wait()
			}
			out := b.Sender.Send(t.Context(), Request(), b.Recorder)
			require.Equal(t, completed, out.Kind, "%+v", out.Failure)
		})
	})
}
