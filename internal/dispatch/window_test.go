package dispatch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

func TestAPromptThatDoesNotFitIsNotSent(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		s := newScript(nil)
		registry, err := providers.NewRegistry([]providers.Config{{Name: "fake", Kind: "scripted", Models: []providers.Model{
			{Name: "a", ContextWindow: 1030, Tokenizer: "o200k_base"}, // the task's answers have up to 1024 tokens
			{Name: "b", ContextWindow: 1030, MaxOutputTokens: 500, Tokenizer: "o200k_base"}, {Name: "c"},
		}}}, map[string]providers.Factory{"scripted": func(providers.Config) (providers.Provider, error) { return s, nil }})
		require.NoError(t, err)
		p := start(t, address, options{script: s, registry: registry})
		j, a := p.create(t, "route")
		a = p.becomes(t, a.ID, attempt.StateFAILED)
		require.Equal(t, providers.CodePromptTooLong, *a.ErrorCode)
		require.Contains(t, *a.ErrorMessage, "the answer may have 1024")
		require.Contains(t, *a.ErrorMessage, "context window has 1030")
		require.False(t, *a.ErrorRetryable)
		require.Nil(t, a.SentAt)

		c := s.next(t) // the fallback has room
		require.Equal(t, "b", c.Model)
		require.Equal(t, 500, c.MaxOutputTokens, "no more than the model can give")
		as := p.attempts(t, j.ID)
		p.becomes(t, as[1].ID, attempt.StateSUCCEEDED)
		s.once(t, as[1].ID)
	})
}

// What a stream told before it broke off for good is billed, though the attempt is UNKNOWN already.
func TestTheUsageOfAnUnknownEndIsKept(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		p := start(t, address, options{script: newScript(func(c *call) providers.Outcome {
			c.ack()
			c.r.Unknown(timedOut())
			out := aborted()
			out.Usage = &providers.Usage{InputTokens: new(7)}
			return out
		})})
		_, a := p.createWith(t, jobs.CreateInput{Task: "single"})
		await.Until(t, "the usage is written", func() bool { return p.attempt(t, a.ID).InputTokens != nil })
		a = p.attempt(t, a.ID)
		require.Equal(t, attempt.StateUNKNOWN, a.State)
		require.Equal(t, providers.CodeIdleTimeout, *a.ErrorCode, "the first reason stays")
	})
}
