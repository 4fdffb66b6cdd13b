package jobs

import (
	"fmt"
	"math"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
)

// Usage is what an attempt used. Nil counts were not told. A count below 0 or beyond MaxTokens, and a part from the cache that is
// greater than the whole or has none, are taken as not told, whoever told them: to cut a count down would make up a number.
type Usage struct {
	InputTokens       *int
	CachedInputTokens *int // the part of InputTokens that came from the provider's cache
	OutputTokens      *int
}

// MaxTokens is the greatest count that an attempt keeps: the greatest Int of GraphQL.
const MaxTokens = math.MaxInt32

// Prices tells what an attempt's usage costs at its target.
type Prices interface {
	// Cost returns an exact decimal and its ISO 4217 currency. ok is false if this process knows no price of the target, or
	// a count that the price is for was not told.
	Cost(target string, u Usage) (cost, currency string, ok bool)
}

// noPrices is for a process that knows none.
type noPrices struct{}

func (noPrices) Cost(string, Usage) (cost, currency string, ok bool) { return "", "", false }

// raised is the usage that is known of an attempt after u was told too. Counts only grow while a provider works, so the
// greater one is the later one. grown is false if nothing new was told.
func raised(a *ent.Attempt, u Usage) (sum Usage, grown bool) {
	greater := func(known, told *int) *int {
		if told == nil || *told < 0 || *told > MaxTokens || known != nil && *known >= *told {
			return known
		}
		grown = true
		return told
	}
	sum = Usage{InputTokens: greater(a.InputTokens, u.InputTokens), OutputTokens: greater(a.OutputTokens, u.OutputTokens)}
	cached := u.CachedInputTokens
	if cached != nil && (sum.InputTokens == nil || *cached > *sum.InputTokens) {
		cached = nil
	}
	sum.CachedInputTokens = greater(a.CachedInputTokens, cached)
	return sum, grown
}

// setUsage raises an attempt's counts and prices all of them anew, so that the cost is always that of the counts beside it,
// whichever way they came. A cost that cannot be told any more is taken away rather than left behind its counts.
func (c *change) setUsage(a *ent.Attempt, u Usage) func(*ent.AttemptUpdate) {
	sum, grown := raised(a, u)
	return func(update *ent.AttemptUpdate) {
		if !grown {
			return
		}
		update.SetNillableInputTokens(sum.InputTokens).SetNillableCachedInputTokens(sum.CachedInputTokens).
			SetNillableOutputTokens(sum.OutputTokens)
		if cost, currency, ok := c.s.prices.Cost(a.Target, sum); ok {
			update.SetCost(cost).SetCurrency(currency)
		} else {
			update.ClearCost().ClearCurrency()
		}
	}
}

// keepUsage is setUsage for an attempt that does not move.
func (c *change) keepUsage(a *ent.Attempt, u Usage) error {
	if _, grown := raised(a, u); !grown {
		return nil
	}
	update := c.tx.Attempt.Update().Where(attempt.ID(a.ID))
	c.setUsage(a, u)(update)
	if err := update.Exec(c.ctx); err != nil {
		return fmt.Errorf("keep the usage of attempt %s: %w", a.ID, err)
	}
	return nil
}
