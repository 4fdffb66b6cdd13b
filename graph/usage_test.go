package graph

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/graph/model"
)

func TestTotalUsage(t *testing.T) {
	t.Parallel()
	usd, eur := new("USD"), new("EUR")
	for name, tc := range map[string]struct {
		attempts []*ent.Attempt
		want     *model.Usage
	}{
		"NothingIsKnown": {[]*ent.Attempt{{}, {}}, nil},
		"Decimals": {[]*ent.Attempt{
			{InputTokens: new(1), CachedInputTokens: new(1), OutputTokens: new(0), Cost: new("0.1"), Currency: usd},
			{InputTokens: new(2), OutputTokens: new(0), Cost: new("0.2"), Currency: usd},
			{InputTokens: new(3), OutputTokens: new(0), Cost: new("123456781345.679011212222244"), Currency: usd},
		}, &model.Usage{InputTokens: new(6), CachedInputTokens: new(1), OutputTokens: new(0), Cost: new("123456781345.979011212222244"), Currency: usd}},
		"AnAttemptWithoutAPrice": {[]*ent.Attempt{
			{InputTokens: new(1), OutputTokens: new(1), Cost: new("0.1"), Currency: usd}, {InputTokens: new(2), OutputTokens: new(2)},
		}, &model.Usage{InputTokens: new(3), OutputTokens: new(3)}},
		"AnAttemptWithoutACount": {[]*ent.Attempt{
			{OutputTokens: new(1)}, {InputTokens: new(1), OutputTokens: new(1), Cost: new("0.1"), Currency: usd},
		}, &model.Usage{InputTokens: new(1), OutputTokens: new(2)}},
		"AnAttemptWithoutTokens": {[]*ent.Attempt{
			{}, {InputTokens: new(0)}, {InputTokens: new(1), OutputTokens: new(1), Cost: new("0.1"), Currency: usd},
		}, &model.Usage{InputTokens: new(1), OutputTokens: new(1), Cost: new("0.1"), Currency: usd}},
		"TwoCurrencies": {[]*ent.Attempt{
			{InputTokens: new(1), Cost: new("0.1"), Currency: usd}, {InputTokens: new(2), Cost: new("0.1"), Currency: eur},
			{InputTokens: new(4), Cost: new("0.1"), Currency: usd},
		}, &model.Usage{InputTokens: new(7)}},
		"MoreThanAnInt": {[]*ent.Attempt{
			{InputTokens: new(math.MaxInt32), CachedInputTokens: new(math.MaxInt32), OutputTokens: new(1), Cost: new("2147483647.5"), Currency: usd},
			{InputTokens: new(1), CachedInputTokens: new(0), OutputTokens: new(math.MaxInt32 - 1), Cost: new("2147483647.5"), Currency: usd},
			{InputTokens: new(2), Cost: new("0"), Currency: usd},
		}, &model.Usage{CachedInputTokens: new(math.MaxInt32), OutputTokens: new(math.MaxInt32), Cost: new("4294967295"), Currency: usd}},
		"NoCurrency": {[]*ent.Attempt{{InputTokens: new(1), Cost: new("0.1")}}, &model.Usage{InputTokens: new(1)}},
		"Free": {[]*ent.Attempt{
			{InputTokens: new(1), Cost: new("0"), Currency: usd}}, &model.Usage{InputTokens: new(1), Cost: new("0"), Currency: usd}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := totalUsage(tc.attempts)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
	_, err := totalUsage([]*ent.Attempt{{ID: "att_1", Cost: new("a lot"), Currency: usd}})
	require.ErrorContains(t, err, "att_1")
}
