package providers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/tokenizer"
)

func target(t *testing.T, m providers.Model) providers.Target {
	t.Helper()
	m.Name = "m"
	r, err := providers.NewRegistry([]providers.Config{{Name: "p", Kind: "stub", Models: []providers.Model{m}}}, factories("1"))
	require.NoError(t, err)
	found, ok := r.Lookup("p/m")
	require.True(t, ok)
	return found
}

// "hello world" is two tokens of two o200k_base words; each further " world" is one.
func words(n int) string { return "hello" + strings.Repeat(" world", n-1) }

func TestCheckWindow(t *testing.T) {
	t.Parallel()
	const chat = tokenizer.ChatTokens
	for name, tc := range map[string]struct {
		model          providers.Model
		system, prompt string
		output         int
		want           string
	}{
		"Fits":                   {providers.Model{ContextWindow: 1000 + chat, Tokenizer: "o200k_base"}, words(100), words(400), 500, ""},
		"OneTokenTooMany":        {providers.Model{ContextWindow: 999 + chat, Tokenizer: "o200k_base"}, words(100), words(400), 500, "the prompt has 511 tokens and the answer may have 500, together 1011; the model's context window has 1010"},
		"SystemCounts":           {providers.Model{ContextWindow: 999 + chat, Tokenizer: "cl100k_base"}, words(500), "", 500, "together 1011"},
		"ChatFormatCounts":       {providers.Model{ContextWindow: 1000, Tokenizer: "o200k_base"}, words(100), words(400), 500, "together 1011"},
		"WindowNotKnown":         {providers.Model{Tokenizer: "o200k_base"}, "", words(100_000), 1_000_000, ""},
		"OutputBoundedByModel":   {providers.Model{ContextWindow: 700 + chat, MaxOutputTokens: 200, Tokenizer: "o200k_base"}, words(100), words(400), 500, ""},
		"OutputAlone":            {providers.Model{ContextWindow: 500}, "", "a", 500, "at least 1 tokens and the answer may have 500, together 501"},
		"WithoutATokenizer":      {providers.Model{ContextWindow: 1000}, words(100), words(5000), 500, ""},
		"WithoutButSurely":       {providers.Model{ContextWindow: 1000}, "", strings.Repeat("a", 256*500+1), 500, "at least 501 tokens"},
		"SurelyIsNotCounted":     {providers.Model{ContextWindow: 1000, Tokenizer: "o200k_base"}, "", strings.Repeat("a", 256*500+1), 500, "at least 501 tokens"},
		"ControlTokensAreText":   {providers.Model{ContextWindow: 59, Tokenizer: "o200k_base"}, "", strings.Repeat("<|endoftext|>", 8), 1, "together 61"},
		"NoMoreTokensThanBytes":  {providers.Model{ContextWindow: 10 + chat, Tokenizer: "o200k_base"}, "", "\x00\x01\x02\x03\x04\x05\x06\x07\x08", 1, ""},
		"AnEmptyPromptIsCounted": {providers.Model{ContextWindow: 5, Tokenizer: "o200k_base"}, "", "", 1, "the prompt has 11 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := target(t, tc.model).CheckWindow(tc.system, tc.prompt, tc.output)
			if tc.want == "" {
				require.Nil(t, f)
				return
			}
			require.NotNil(t, f)
			require.Equal(t, providers.CodePromptTooLong, f.Code)
			require.False(t, f.Retryable)
			require.Contains(t, f.Message, tc.want)
		})
	}
}

// asks is a tokenizer that would be a request.
type asks struct {
	n   int
	err error
}

func (a asks) Count(context.Context, tokenizer.Prompt) (int, error) { return a.n, a.err }

func TestOnlyCountWindowAsksTheProvider(t *testing.T) {
	t.Parallel()
	prompt := words(200) // 1199 bytes
	m := target(t, providers.Model{ContextWindow: 1000})
	m.Tokenizer = asks{n: 501}
	require.Nil(t, m.CheckWindow("", prompt, 500), "an attempt makes one request")
	f, err := m.CountWindow(t.Context(), "", prompt, 500)
	require.NoError(t, err)
	require.Contains(t, f.Message, "the prompt has 501 tokens")
	m.Tokenizer = asks{n: 500}
	f, err = m.CountWindow(t.Context(), "", prompt, 500)
	require.NoError(t, err)
	require.Nil(t, f)
	down := errors.New("down")
	m.Tokenizer = asks{err: down}
	_, err = m.CountWindow(t.Context(), "", prompt, 500)
	require.ErrorIs(t, err, down)
	f, err = m.CountWindow(t.Context(), "", "short", 500)
	require.NoError(t, err, "it fits whatever the count")
	require.Nil(t, f)
}

func TestOutputBudget(t *testing.T) {
	t.Parallel()
	require.Equal(t, 500, providers.Model{}.OutputBudget(500))
	require.Equal(t, 200, providers.Model{MaxOutputTokens: 200}.OutputBudget(500))
	require.Equal(t, 200, providers.Model{MaxOutputTokens: 500}.OutputBudget(200))
}
