package providers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
)

type stub struct{ version string }

func (s stub) Send(context.Context, providers.Request, providers.Reporter) providers.Outcome {
	return providers.Outcome{}
}
func (s stub) AdapterVersion() string { return s.version }

func factories(version string) map[string]providers.Factory {
	f := func(providers.Config) (providers.Provider, error) { return stub{version}, nil }
	return map[string]providers.Factory{"stub": f, "other": f}
}

func valid() providers.Config {
	return providers.Config{Name: "openrouter", Kind: "stub", BaseURL: "https://example.com/v1", APIKey: "sk-1",
		Models: []providers.Model{
			{Name: "meta/llama", ContextWindow: 1000, MaxOutputTokens: 100, Tokenizer: "o200k_base", PricePerMillion: providers.Price{Input: "0.15", Output: "0.60"}},
			{Name: "small"},
		}}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	second := valid()
	second.Name, second.Kind = "b", "other"
	r, err := providers.NewRegistry([]providers.Config{valid(), second}, factories("1"))
	require.NoError(t, err)
	var ids []string
	for _, target := range r.Targets() {
		ids = append(ids, target.ID)
	}
	require.Equal(t, []string{"openrouter/meta/llama", "openrouter/small", "b/meta/llama", "b/small"}, ids)

	target, ok := r.Lookup("openrouter/meta/llama")
	require.True(t, ok)
	require.Equal(t, "openrouter", target.Provider)
	require.Equal(t, "meta/llama", target.Model.Name)
	require.Equal(t, providers.DefaultAckTimeout, target.Config.AckTimeout)
	require.Empty(t, target.Config.APIKey, "the key goes no further than the sender")
	require.NotNil(t, target.Sender)

	for _, unknown := range []string{"", "openrouter", "openrouter/", "openrouter/llama", "meta/llama", "OPENROUTER/small"} {
		_, ok := r.Lookup(unknown)
		require.False(t, ok, unknown)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	d := providers.Defaults()
	require.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 120 * time.Second, 120 * time.Second, 0},
		[]time.Duration{d.AckTimeout, d.IdleTimeout, d.TotalTimeout, d.Linger, d.PresumeDeadAfter})
	require.Equal(t, 32, d.MaxConcurrency)
	require.Equal(t, providers.CircuitBreaker{Failures: 5, OpenFor: time.Minute}, d.CircuitBreaker)
	require.False(t, d.Idempotent)
	require.Zero(t, providers.Config{}.WithDefaults().Linger, "zero means not to linger")
}

func TestRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*providers.Config)
		want   string
	}{
		"PlainHTTP":          {func(c *providers.Config) { c.BaseURL = "http://example.com/v1" }, "providers[1].base_url: must be https, except on loopback"},
		"LooksLikeLoopback":  {func(c *providers.Config) { c.BaseURL = "http://127.0.0.1.example.com" }, "providers[1].base_url: must be https, except on loopback"},
		"UserInformation":    {func(c *providers.Config) { c.BaseURL = "https://user:sk-1@example.com" }, "providers[1].base_url: must not hold a user name or password"},
		"Query":              {func(c *providers.Config) { c.BaseURL = "https://example.com?key=sk-1" }, "providers[1].base_url: must not have a query or fragment"},
		"NoHost":             {func(c *providers.Config) { c.BaseURL = "https:///v1" }, "providers[1].base_url: must have a host"},
		"NotAURL":            {func(c *providers.Config) { c.BaseURL = "https://sk-1\x7f" }, "providers[1].base_url: is not a URL"},
		"UnknownKind":        {func(c *providers.Config) { c.Kind = "fax" }, `providers[1].kind: "fax" is not one of: other, stub`},
		"DuplicateName":      {func(c *providers.Config) { c.Name = "a" }, `providers[1].name: "a" is already the name of providers[0]`},
		"SlashInName":        {func(c *providers.Config) { c.Name = "a/b" }, "providers[1].name: must be 1 to 63 lower-case letters, digits, dots, dashes or underscores"},
		"NoModels":           {func(c *providers.Config) { c.Models = nil }, "providers[1].models: must name at least one model"},
		"DuplicateModel":     {func(c *providers.Config) { c.Models[1].Name = "meta/llama" }, `providers[1].models[1].name: "meta/llama" is already the name of models[0]`},
		"SpaceInModel":       {func(c *providers.Config) { c.Models[0].Name = "a b" }, "providers[1].models[0].name: must be 1 to 200 printable ASCII characters without spaces"},
		"NegativeTimeout":    {func(c *providers.Config) { c.AckTimeout = -1 }, "providers[1].ack_timeout: must be a positive duration, not -1ns"},
		"NegativeLinger":     {func(c *providers.Config) { c.Linger = -1 }, "providers[1].linger: must be a positive duration, not -1ns"},
		"NoConcurrency":      {func(c *providers.Config) { c.MaxConcurrency = -1 }, "providers[1].max_concurrency: must be at least 1, not -1"},
		"NegativeFailures":   {func(c *providers.Config) { c.CircuitBreaker.Failures = -1 }, "providers[1].circuit_breaker.failures: must not be negative"},
		"OpenForNoTime":      {func(c *providers.Config) { c.CircuitBreaker.Failures = 1 }, "providers[1].circuit_breaker.open_for: must be a positive duration, not 0s"},
		"PriceNotDecimal":    {func(c *providers.Config) { c.Models[0].PricePerMillion.Output = "1e3" }, "providers[1].models[0].price_per_million.output: must be a decimal number such as 0.15"},
		"CachedNotDecimal":   {func(c *providers.Config) { c.Models[0].PricePerMillion.CachedInput = "-1" }, "providers[1].models[0].price_per_million.cached_input: must be a decimal number such as 0.15"},
		"NoCurrency":         {func(c *providers.Config) { c.Currency = "usd" }, "providers[1].currency: must be an ISO 4217 code such as USD"},
		"UnknownTokenizer":   {func(c *providers.Config) { c.Models[0].Tokenizer = "o200k_harmony" }, `providers[1].models[0].tokenizer: "o200k_harmony" is not one of: anthropic, cl100k_base, gemini, llamacpp, o200k_base, vllm`},
		"NobodyToAsk":        {func(c *providers.Config) { c.BaseURL, c.Models[0].Tokenizer = "", "vllm" }, `providers[1].models[0].tokenizer: "vllm" asks the provider, which has no base_url`},
		"NegativeWindow":     {func(c *providers.Config) { c.Models[0].ContextWindow = -1 }, "providers[1].models[0].context_window: must not be negative"},
		"LineBreakInTheKey":  {func(c *providers.Config) { c.APIKey = "sk-1\n" }, "providers[1].api_key: what api_key_env or api_key_file leads to holds white space or characters that a header cannot carry"},
		"NegativeOutputSize": {func(c *providers.Config) { c.Models[0].MaxOutputTokens = -1 }, "providers[1].models[0].max_output_tokens: must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := valid(), valid()
			first.Name = "a"
			tc.change(&second)
			_, err := providers.NewRegistry([]providers.Config{first, second}, factories("1"))
			require.EqualError(t, err, tc.want)
			require.NotContains(t, err.Error(), "sk-1")
			var ce *providers.ConfigError
			require.ErrorAs(t, err, &ce)
			require.True(t, strings.HasPrefix(ce.Path, "providers[1]."))
		})
	}
	for _, ok := range []string{"http://127.0.0.1:8080/v1", "http://localhost/v1", "http://[::1]:9/v1", "https://10.0.0.1"} {
		c := valid()
		c.BaseURL = ok
		_, err := providers.NewRegistry([]providers.Config{c}, factories("1"))
		require.NoError(t, err, ok)
	}
}

func TestReportsAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	a, b := valid(), valid()
	a.Name, a.BaseURL, b.Kind = "a", "ftp://x", "?"
	_, err := providers.NewRegistry([]providers.Config{a, b}, factories("1"))
	require.ErrorContains(t, err, "providers[0].base_url: ")
	require.ErrorContains(t, err, "providers[1].kind: ")
}

func TestFactoryErrorsNameThePlace(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, err := providers.NewRegistry([]providers.Config{valid()}, map[string]providers.Factory{
		"stub": func(providers.Config) (providers.Provider, error) { return nil, broken }})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "providers[0]: ")
}

func TestConfigDigest(t *testing.T) {
	t.Parallel()
	digest := func(version string, change func(*providers.Config)) string {
		c := valid()
		if change != nil {
			change(&c)
		}
		r, err := providers.NewRegistry([]providers.Config{c}, factories(version))
		require.NoError(t, err)
		d, ok := r.ConfigDigest(c.Name + "/" + c.Models[0].Name)
		require.True(t, ok)
		require.Regexp(t, "^sha256:[0-9a-f]{64}$", d)
		return d
	}
	base := digest("1", nil)
	for name, change := range map[string]func(*providers.Config){
		"APIKey":         func(c *providers.Config) { c.APIKey = "sk-2" },
		"Linger":         func(c *providers.Config) { c.Linger = time.Hour },
		"PresumeDead":    func(c *providers.Config) { c.PresumeDeadAfter = time.Hour },
		"Idempotent":     func(c *providers.Config) { c.Idempotent = true },
		"MaxConcurrency": func(c *providers.Config) { c.MaxConcurrency = 1 },
		"CircuitBreaker": func(c *providers.Config) {
			c.CircuitBreaker = providers.CircuitBreaker{Failures: 1, OpenFor: time.Hour}
		},
		"Proxy":         func(c *providers.Config) { c.ProxyFromEnvironment = true },
		"OtherModel":    func(c *providers.Config) { c.Models[1].ContextWindow = 7 },
		"PriceSpelling": func(c *providers.Config) { c.Models[0].PricePerMillion.Output = "0.6" },
		"TrailingSlash": func(c *providers.Config) { c.BaseURL += "/" },
		"Default":       func(c *providers.Config) { c.AckTimeout = providers.DefaultAckTimeout },
	} {
		require.Equal(t, base, digest("1", change), name)
	}
	seen := map[string]string{base: "Base", digest("2", nil): "AdapterVersion"}
	for name, change := range map[string]func(*providers.Config){
		"Name":          func(c *providers.Config) { c.Name = "x" },
		"Kind":          func(c *providers.Config) { c.Kind = "other" },
		"BaseURL":       func(c *providers.Config) { c.BaseURL = "https://example.org/v1" },
		"Strict":        func(c *providers.Config) { c.StrictSchema = true },
		"Model":         func(c *providers.Config) { c.Models[0].Name = "y" },
		"ContextWindow": func(c *providers.Config) { c.Models[0].ContextWindow = 1 },
		"MaxOutput":     func(c *providers.Config) { c.Models[0].MaxOutputTokens = 1 },
		"Tokenizer":     func(c *providers.Config) { c.Models[0].Tokenizer = "cl100k_base" },
		"CachedPrice":   func(c *providers.Config) { c.Models[0].PricePerMillion.CachedInput = "0.1" },
		"Currency":      func(c *providers.Config) { c.Currency = "EUR" },
		"InputPrice":    func(c *providers.Config) { c.Models[0].PricePerMillion.Input = "1" },
		"OutputPrice":   func(c *providers.Config) { c.Models[0].PricePerMillion.Output = "1" },
		"API":           func(c *providers.Config) { c.API = "chat" },
		"Background":    func(c *providers.Config) { c.Background = true },
		"Reasoning":     func(c *providers.Config) { c.Models[0].Reasoning = true },
		"Structured":    func(c *providers.Config) { c.Models[0].StructuredOutput = "tool" },
		"Format":        func(c *providers.Config) { c.ResponseFormat = providers.FormatObject },
		"NoFormat":      func(c *providers.Config) { c.ResponseFormat = providers.FormatNone },
		"StreamUsage":   func(c *providers.Config) { c.OmitStreamUsage = true },
		"TokensField":   func(c *providers.Config) { c.MaxTokensField = providers.FieldMaxTokens },
		"Ack":           func(c *providers.Config) { c.AckTimeout = time.Second },
		"Idle":          func(c *providers.Config) { c.IdleTimeout = time.Second },
		"Total":         func(c *providers.Config) { c.TotalTimeout = time.Second },
	} {
		d := digest("1", change)
		require.NotContains(t, seen, d, name)
		seen[d] = name
	}
	r, err := providers.NewRegistry([]providers.Config{valid()}, factories("1"))
	require.NoError(t, err)
	require.NotContains(t, r.ConfigParts(r.Targets()[0].ID), "stream_usage", "what is empty is left out, as in the digests of before")
	c := valid()
	c.OmitStreamUsage, c.MaxTokensField = true, providers.FieldMaxTokens
	told, err := providers.NewRegistry([]providers.Config{c}, factories("1"))
	require.NoError(t, err)
	parts := told.ConfigParts(told.Targets()[0].ID)
	require.Equal(t, []string{`"false"`, `"max_tokens"`}, []string{string(parts["stream_usage"]), string(parts["max_tokens_field"])})
	_, ok := r.ConfigDigest("openrouter/none")
	require.False(t, ok)
}
