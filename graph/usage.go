package graph

import (
	"fmt"

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

// totalUsage sums up what is known of the attempts, nil if nothing is. A cost in two currencies, or in none, is no sum: it is
// null then, and the counts stay.
func totalUsage(attempts []*ent.Attempt) (*model.Usage, error) {
	var total *model.Usage
	cost, agree := decimal.Zero, true
	for _, a := range attempts {
		u := attemptUsage(a)
		if u == nil {
			continue
		}
		if total == nil {
			total = &model.Usage{}
		}
		total.InputTokens = add(total.InputTokens, u.InputTokens)
		total.CachedInputTokens = add(total.CachedInputTokens, u.CachedInputTokens)
		total.OutputTokens = add(total.OutputTokens, u.OutputTokens)
		if u.Cost == nil {
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
	switch {
	case total == nil:
	case !agree:
		total.Currency = nil
	case total.Currency != nil:
		s := cost.String()
		total.Cost = &s
	}
	return total, nil
}

func add(a, b *int) *int {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	sum := *a + *b
	return &sum
}
