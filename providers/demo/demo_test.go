package demo_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/demo"
)

// recorder keeps what a reporter is told, with the time since the start.
type recorder struct {
	start time.Time
	said  []string
}

func (r *recorder) note(s string)                          { r.said = append(r.said, s+" "+time.Since(r.start).String()) }
func (r *recorder) Acknowledged(providers.Acknowledgement) { r.note("acknowledged") }
func (r *recorder) Progress()                              { r.note("progress") }
func (r *recorder) Unknown(f providers.Failure)            { r.note("unknown " + f.Code) }

func send(t *testing.T, cfg providers.Config, delay time.Duration, model string, ctx context.Context) (providers.Outcome, []string) {
	t.Helper()
	p, err := demo.NewWithDelay(cfg, delay)
	require.NoError(t, err)
	r := &recorder{start: time.Now()}
	out := p.Send(ctx, providers.Request{AttemptID: "att_1", Task: "triage", Model: model, Prompt: "two words",
		Input: json.RawMessage(`{"text":"refund please"}`), Schema: schemaOf(t, "triage")}, r)
	return out, append(r.said, "end "+time.Since(r.start).String())
}

func TestLaserPrints(t *testing.T) {
	t.Parallel()
	schemaOf(t, "triage")
	synctest.Test(t, func(t *testing.T) {
		out, said := send(t, demo.Config(), 10*time.Millisecond, demo.Laser, t.Context())
		require.Equal(t, providers.Completed, out.Kind)
		require.JSONEq(t, `{"category":"billing","priority":"normal","summary":"refund please"}`, string(out.Output))
		require.Equal(t, "simulated", out.FinishReason)
		require.Equal(t, "simulated-att_1", out.ProviderRequestID)
		require.Equal(t, 2, *out.Usage.InputTokens)
		require.Equal(t, []string{"acknowledged 10ms", "progress 20ms", "progress 30ms", "end 30ms"}, said)
	})
}

func TestInkjetJamsForGood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out, said := send(t, demo.Config(), 10*time.Millisecond, demo.Inkjet, t.Context())
		require.Equal(t, providers.Failed, out.Kind)
		require.Equal(t, providers.CodeJammed, out.Failure.Code)
		require.False(t, out.Failure.Retryable)
		require.Equal(t, []string{"acknowledged 10ms", "end 20ms"}, said)
	})
}

func TestFaxFallsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := demo.Config()
		cfg.IdleTimeout, cfg.Linger = 3*time.Second, 2*time.Second
		out, said := send(t, cfg, 0, demo.Fax, t.Context())
		require.Equal(t, providers.Unknown, out.Kind)
		require.Equal(t, providers.CodeIdleTimeout, out.Failure.Code)
		require.Equal(t, []string{"acknowledged 0s", "unknown IDLE_TIMEOUT 3s", "end 5s"}, said)
	})
}

func TestDemoKeepsTheTotalTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := demo.Config()
		cfg.TotalTimeout, cfg.Linger = time.Second, 0
		out, said := send(t, cfg, 0, demo.Fax, t.Context())
		require.Equal(t, providers.CodeTotalTimeout, out.Failure.Code)
		require.Equal(t, []string{"acknowledged 0s", "unknown TOTAL_TIMEOUT 1s", "end 1s"}, said)
	})
}

func TestDemoAnswersLateWithinLinger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cfg := demo.Config()
		cfg.AckTimeout, cfg.Linger = time.Second, 10*time.Second
		out, said := send(t, cfg, 2*time.Second, demo.Laser, t.Context())
		require.Equal(t, providers.Completed, out.Kind)
		require.Equal(t, []string{"unknown ACK_TIMEOUT 1s", "end 6s"}, said)
	})
}

func TestDemoEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out, said := send(t, demo.Config(), 0, demo.Fax, ctx)
		require.Equal(t, providers.Unknown, out.Kind)
		require.Equal(t, providers.CodeAborted, out.Failure.Code)
		require.Equal(t, []string{"acknowledged 0s", "end 1s"}, said)

		out, said = send(t, demo.Config(), 0, demo.Fax, ctx)
		require.Equal(t, providers.Failed, out.Kind)
		require.Equal(t, providers.CodeAborted, out.Failure.Code)
		require.Equal(t, []string{"end 0s"}, said)
	})
}

func TestDemoConfigIsValid(t *testing.T) {
	t.Parallel()
	r, err := providers.NewRegistry([]providers.Config{demo.Config()}, map[string]providers.Factory{demo.Kind: demo.New})
	require.NoError(t, err)
	require.Len(t, r.Targets(), 3)
	_, ok := r.Lookup("demo/laser")
	require.True(t, ok)
}

// The canary of a contract, which all three get: the laser obeys the system prompt, whatever the input is.
func TestTheLaserAnswersWhatItsSystemPromptDictates(t *testing.T) {
	t.Parallel()
	p, err := demo.NewWithDelay(demo.Config(), 0)
	require.NoError(t, err)
	ask := func(model string) providers.Outcome {
		return p.Send(t.Context(), providers.Request{Task: "triage", Model: model, Prompt: "Answer with exactly this JSON object and nothing else:\n{}",
			System: "Sort this. Answer with exactly this JSON object and nothing else:\n{\"canary\":\"canary-1\"}",
			Input:  json.RawMessage(`{"text":"refund please"}`), Schema: schemaOf(t, "triage")}, &recorder{start: time.Now()})
	}
	require.Equal(t, `{"canary":"canary-1"}`, string(ask(demo.Laser).Output)) //nolint:testifylint // to the byte
	require.Equal(t, providers.CodeJammed, ask(demo.Inkjet).Failure.Code)
}
