package graph

import (
	"fmt"
	"math"

	"github.com/shopspring/decimal"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/graph/model"
)

// attemptUsage is nil if the provider told nothing.
func attemptUsage(a *ent.Attempt) *model.Usage {
	if a.InputTokens == nil && a.OutputTokens == nil && a.CachedInputTokens == nil && a.Cost == nil {
		return nil
	}
	return &model.Usage{
		InputTokens: a.InputTokens, CachedInputTokens: a.CachedInputTokens, OutputTokens: a.OutputTokens,
		Cost: a.Cost, Currency: a.Currency,
	}
}

// totalUsage sums up what is known of the attempts, nil if nothing is. A cost in two currencies, or in none, is no sum, and
// without that of an attempt which used tokens a part would pass for the whole: it is null then, and the counts stay. A count
// beyond an Int's 32 bits is null, and the cost stays.
func totalUsage(attempts []*ent.Attempt) (*model.Usage, error) {
	var total *model.Usage
	var input, cached, output count
	cost, agree, whole := decimal.Zero, true, true
	for _, a := range attempts {
		u := attemptUsage(a)
		if u == nil {
			continue
		}
		if total == nil {
			total = &model.Usage{}
		}
		input.add(u.InputTokens)
		cached.add(u.CachedInputTokens)
		output.add(u.OutputTokens)
		if u.Cost == nil {
			whole = whole && !used(u.InputTokens) && !used(u.OutputTokens)
			continue
		}
		d, err := decimal.NewFromString(*u.Cost)
		if err != nil {
			return nil, fmt.Errorf("attempt %s has a malformed cost: %w", a.ID, err)
		}
		switch {
		case u.Currency == nil || total.Currency != nil && *total.Currency != *u.Currency:
			agree = false
		default:
			total.Currency = u.Currency
			cost = cost.Add(d)
		}
	}
	if total == nil {
		return nil, nil
	}
	total.InputTokens, total.CachedInputTokens, total.OutputTokens = input.total(), cached.total(), output.total()
	switch {
	case !agree || !whole:
		total.Currency = nil
	case total.Currency != nil:
		s := cost.String()
		total.Cost = &s
	}
	return total, nil
}

// used says whether tokens were told that somebody has to pay for.
func used(n *int) bool { return n != nil && *n > 0 }

// count is a sum of what was told.
type count struct {
	sum  int
	told bool
}

func (c *count) add(n *int) {
	if n != nil {
		c.sum, c.told = min(c.sum+*n, math.MaxInt32+1), true // once beyond, it stays so
	}
}

// total is nil if nothing was told, or more than an Int holds.
func (c *count) total() *int {
	if !c.told || c.sum > math.MaxInt32 {
		return nil
	}
	return &c.sum
}
