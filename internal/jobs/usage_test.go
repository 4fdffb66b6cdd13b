package jobs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
)

// tagged prices a usage by a text that names what it is for: the life of jobs keeps costs and does no arithmetic.
type tagged struct{ free string }

func (p tagged) Cost(target string, u Usage) (cost, currency string, ok bool) {
	if target == p.free || u.InputTokens == nil || u.OutputTokens == nil {
		return "", "", false
	}
	cached := 0
	if u.CachedInputTokens != nil {
		cached = *u.CachedInputTokens
	}
	return fmt.Sprintf("%s %d(%d)+%d", target, *u.InputTokens, cached, *u.OutputTokens), "EUR", true
}

func requireCost(t *testing.T, want string, a *ent.Attempt) {
	t.Helper()
	if want == "" {
		require.Nil(t, a.Cost)
		require.Nil(t, a.Currency, "a currency without a cost says nothing")
		return
	}
	require.NotNil(t, a.Cost)
	require.Equal(t, want, *a.Cost)
	require.Equal(t, "EUR", *a.Currency)
}

func TestCost(t *testing.T) {
	t.Parallel()
	used := Usage{InputTokens: new(7), OutputTokens: new(11)}
	no := &Failure{Code: "REFUSED", Message: "no"}

	t.Run("IsOnEveryEndThatWasBilled", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.prices = tagged{}
			for name, o := range map[string]Outcome{
				"success":        answer("a"),
				"invalid output": {Output: []byte(`{"answer":1}`), Usage: used},
				"failure":        {Failure: no, Usage: used},
				"unknown":        {Unknown: true, Failure: no, Usage: used},
			} {
				j := b.create(t, "single")
				a := b.last(t, j.ID)
				b.running(t, a)
				v := b.settle(t, a, o)
				require.True(t, v.Landed, name)
				requireCost(t, a.Target+" 7(0)+11", v.Attempt)
			}
		})
	})

	t.Run("OfALoserIsKept", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.prices = tagged{}
			_, winner, loser := b.race(t)
			b.settle(t, winner, answer("a"))
			v := b.settle(t, loser, answer("b"))
			require.False(t, v.Landed)
			require.Equal(t, attempt.StateSUPERSEDED, v.Attempt.State)
			requireCost(t, loser.Target+" 7(0)+11", v.Attempt)
		})
	})

	t.Run("OfWhatAProviderReportsIsKept", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.prices = tagged{}
			_, a := b.unknown(t, "single")
			v, err := b.SettleReported(t.Context(), ProviderOf(a.Target), a.ID, Outcome{Failure: no, Usage: used})
			require.NoError(t, err)
			requireCost(t, a.Target+" 7(0)+11", v.Attempt)
		})
	})

	t.Run("FollowsCountsThatComeInPieces", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.prices = tagged{}
			j := b.create(t, "single")
			a := b.last(t, j.ID)
			b.running(t, a)
			v := b.settle(t, a, Outcome{Unknown: true, Failure: no, Usage: Usage{InputTokens: new(50)}})
			requireCost(t, "", v.Attempt)
			v = b.settle(t, a, Outcome{Unknown: true, Failure: no, Usage: Usage{OutputTokens: new(3)}})
			require.False(t, v.Landed)
			requireCost(t, a.Target+" 50(0)+3", v.Attempt)
			require.Zero(t, b.metrics.count(), "no answer was lost")
			v = b.settle(t, a, Outcome{Failure: no, Usage: Usage{InputTokens: new(40), CachedInputTokens: new(20), OutputTokens: new(9)}})
			require.True(t, v.Landed)
			require.Equal(t, 50, *v.Attempt.InputTokens, "a smaller count is an older one, also where the attempt moves")
			requireCost(t, a.Target+" 50(20)+9", v.Attempt)
			v = b.settle(t, a, Outcome{Failure: no, Usage: Usage{OutputTokens: new(8)}})
			requireCost(t, a.Target+" 50(20)+9", v.Attempt)
			v = b.settle(t, a, Outcome{Failure: no, Usage: Usage{OutputTokens: new(80)}})
			requireCost(t, a.Target+" 50(20)+80", v.Attempt)
		})
	})

	t.Run("IsOfCountsThatCanBe", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.prices = tagged{}
			for name, tc := range map[string]struct {
				told, want Usage
				cost       string
			}{
				"all of it cached":        {Usage{new(7), new(7), new(1)}, Usage{new(7), new(7), new(1)}, " 7(7)+1"},
				"more cached than input":  {Usage{new(7), new(8), new(1)}, Usage{new(7), nil, new(1)}, " 7(0)+1"},
				"cached without input":    {Usage{nil, new(8), new(1)}, Usage{nil, nil, new(1)}, ""},
				"the greatest":            {Usage{new(MaxTokens), new(0), new(MaxTokens)}, Usage{new(MaxTokens), new(0), new(MaxTokens)}, " 2147483647(0)+2147483647"},
				"more input than an Int":  {Usage{new(MaxTokens + 1), new(8), new(1)}, Usage{nil, nil, new(1)}, ""},
				"more output than an Int": {Usage{new(7), new(3), new(99999999999)}, Usage{new(7), new(3), nil}, ""},
				"negative":                {Usage{new(7), new(-1), new(-1)}, Usage{new(7), nil, nil}, ""},
			} {
				_, a := b.unknown(t, "single")
				v, err := b.SettleReported(t.Context(), ProviderOf(a.Target), a.ID, Outcome{Failure: no, Usage: tc.told})
				require.NoError(t, err, name)
				require.True(t, v.Landed, name)
				require.Equal(t, tc.want, Usage{v.Attempt.InputTokens, v.Attempt.CachedInputTokens, v.Attempt.OutputTokens}, name)
				if tc.cost != "" {
					tc.cost = a.Target + tc.cost
				}
				requireCost(t, tc.cost, v.Attempt)
			}
		})
	})

	t.Run("IsNullWithoutAPrice", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, winner, loser := b.race(t)
			b.prices = tagged{}
			b.settle(t, loser, Outcome{Unknown: true, Failure: no, Usage: used})
			requireCost(t, loser.Target+" 7(0)+11", b.attempt(t, loser.ID))
			// Another process, whose configuration has no price of it any more.
			b.prices = tagged{free: loser.Target}
			v := b.settle(t, loser, Outcome{Unknown: true, Failure: no, Usage: used})
			requireCost(t, loser.Target+" 7(0)+11", v.Attempt)
			v = b.settle(t, loser, Outcome{Unknown: true, Failure: no, Usage: Usage{OutputTokens: new(12)}})
			require.Equal(t, 12, *v.Attempt.OutputTokens)
			requireCost(t, "", v.Attempt)
			b.prices = noPrices{}
			v = b.settle(t, winner, answer("a"))
			requireCost(t, "", v.Attempt)
			require.Equal(t, j.ID, v.Job.ID)
		})
	})
}
