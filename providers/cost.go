package providers

import "github.com/shopspring/decimal"

// perMillion is the exponent of the unit that prices are given in.
const perMillion = -6

// Cost is what the usage costs, as an exact decimal in plain notation: tokens times price, summed, and never rounded. ok is
// false if the price of what was used or one of its counts is not known, since a part of a cost would pass for the whole.
func (p Price) Cost(u Usage) (cost string, ok bool) {
	if p.Input == "" || p.Output == "" || u.InputTokens == nil || u.OutputTokens == nil {
		return "", false
	}
	cached := 0
	if u.CachedInputTokens != nil && p.CachedInput != "" {
		cached = min(*u.CachedInputTokens, *u.InputTokens)
	}
	total := decimal.Zero
	for _, part := range []struct {
		tokens int
		price  string
	}{{*u.InputTokens - cached, p.Input}, {cached, p.CachedInput}, {*u.OutputTokens, p.Output}} {
		if part.tokens == 0 {
			continue
		}
		price, err := decimal.NewFromString(part.price)
		if err != nil {
			return "", false
		}
		total = total.Add(price.Mul(decimal.NewFromInt(int64(part.tokens))))
	}
	return total.Shift(perMillion).String(), true
}
