package providers_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/docket-gateway/docket/providers"
)

func TestCostIsExact(t *testing.T) {
	t.Parallel()
	mini := providers.Price{Input: "0.15", Output: "0.60"}
	cached := providers.Price{Input: "2.50", CachedInput: "1.25", Output: "10.00"}
	for name, tc := range map[string]struct {
		price providers.Price
		usage providers.Usage
		want  string
	}{
		"Both":                 {mini, providers.Usage{InputTokens: new(1000), OutputTokens: new(500)}, "0.00045"},
		"OneToken":             {mini, providers.Usage{InputTokens: new(1), OutputTokens: new(0)}, "0.00000015"},
		"Nothing":              {mini, providers.Usage{InputTokens: new(0), OutputTokens: new(0)}, "0"},
		"Free":                 {providers.Price{Input: "0", Output: "0.00"}, providers.Usage{InputTokens: new(7), OutputTokens: new(7)}, "0"},
		"BeyondADouble":        {providers.Price{Input: "123456789.123456789012", Output: "0"}, providers.Usage{InputTokens: new(999_999_937), OutputTokens: new(0)}, "123456781345.679074234222292244"},
		"Cached":               {cached, providers.Usage{InputTokens: new(1000), CachedInputTokens: new(400), OutputTokens: new(10)}, "0.0021"},
		"CachedWithoutAPrice":  {mini, providers.Usage{InputTokens: new(1000), CachedInputTokens: new(400), OutputTokens: new(0)}, "0.00015"},
		"MoreCachedThanThere":  {cached, providers.Usage{InputTokens: new(4), CachedInputTokens: new(400), OutputTokens: new(0)}, "0.000005"},
		"NothingCachedIsTold":  {cached, providers.Usage{InputTokens: new(4), OutputTokens: new(0)}, "0.00001"},
		"NoPrice":              {providers.Price{}, providers.Usage{InputTokens: new(0), OutputTokens: new(0)}, ""},
		"HalfAPrice":           {providers.Price{Input: "1"}, providers.Usage{InputTokens: new(1), OutputTokens: new(1)}, ""},
		"InputNotTold":         {mini, providers.Usage{OutputTokens: new(500)}, ""},
		"OutputNotTold":        {mini, providers.Usage{InputTokens: new(500)}, ""},
		"PriceThatIsNoDecimal": {providers.Price{Input: "a lot", Output: "1"}, providers.Usage{InputTokens: new(1), OutputTokens: new(1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cost, ok := tc.price.Cost(tc.usage)
			require.Equal(t, tc.want, cost)
			require.Equal(t, tc.want != "", ok)
		})
	}
}

// A sum of single tokens is the cost of all of them: no step of it is rounded.
func TestCostOfManyIsTheSumOfEach(t *testing.T) {
	t.Parallel()
	price := providers.Price{Input: "0.123456789012", Output: "1"}
	one, ok := price.Cost(providers.Usage{InputTokens: new(1), OutputTokens: new(0)})
	require.True(t, ok)
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.IntRange(0, 2_000_000_000).Draw(t, "tokens")
		cost, ok := price.Cost(providers.Usage{InputTokens: &tokens, OutputTokens: new(0)})
		require.True(t, ok)
		want := new(big.Rat)
		_, ok = want.SetString(one)
		require.True(t, ok)
		want.Mul(want, new(big.Rat).SetInt64(int64(tokens)))
		got, ok := new(big.Rat).SetString(cost)
		require.True(t, ok)
		require.Zero(t, want.Cmp(got), cost)
	})
}
