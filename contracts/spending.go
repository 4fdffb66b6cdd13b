package contracts

import (
	"errors"
	"fmt"
	"sync"

	"github.com/shopspring/decimal"

	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/tokenizer"
)

var (
	// ErrMaxCost says that the next request could have crossed the cap, so it was not sent.
	ErrMaxCost = errors.New("the cost cap would be crossed")
	// ErrPriceUnknown says that a cap cannot be kept, since nobody knows what a request costs.
	ErrPriceUnknown = errors.New("a cost cap needs the model's prices")
)

// Spending keeps what is sent below a cap: before each request the most that it can cost is set aside. It is safe for concurrent
// use, and can be shared by several runs. Prices of several currencies are refused, since they cannot be added.
type Spending struct {
	mu       sync.Mutex
	cap      decimal.Decimal
	taken    decimal.Decimal // spent, or set aside for requests under way
	currency string
}

// NewSpending returns one with the cap, a decimal number that is not negative.
func NewSpending(most string) (*Spending, error) {
	d, err := decimal.NewFromString(most)
	if err != nil || d.IsNegative() {
		return nil, fmt.Errorf("the cap %q is not a decimal number that is not negative", most)
	}
	return &Spending{cap: d}, nil
}

// Spent is what was spent; what was sent without an account of its tokens counts with the most that it can have cost.
func (s *Spending) Spent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken.String()
}

// reserve sets the most aside that one request can cost: no token is less than a byte, and no answer longer than its budget.
func (s *Spending) reserve(task *tasks.Definition, t providers.Target, c Case) (settle func(*providers.Usage), err error) {
	if s == nil {
		return func(*providers.Usage) {}, nil
	}
	prompt, err := task.Render(c.Input)
	if err != nil {
		return nil, err //nolint:wrapcheck // not reachable: it was rendered before
	}
	in := len(prompt.System) + len(prompt.User) + len(canaryDirective) + 2*len(task.OutputSchemaJSON) + tokenizer.ChatTokens
	out := t.Model.OutputBudget(task.MaxOutputTokens)
	price := t.Model.PricePerMillion
	price.CachedInput = ""
	text, ok := price.Cost(providers.Usage{InputTokens: &in, OutputTokens: &out})
	if !ok {
		return nil, fmt.Errorf("%w: %s has none", ErrPriceUnknown, t.ID)
	}
	most, err := decimal.NewFromString(text)
	if err != nil {
		return nil, fmt.Errorf("the cost of %s: %w", t.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.currency == "" {
		s.currency = t.Config.Currency
	}
	if s.currency != t.Config.Currency {
		return nil, fmt.Errorf("%w in one currency, not in %s and %s", ErrPriceUnknown, s.currency, t.Config.Currency)
	}
	if s.taken.Add(most).GreaterThan(s.cap) {
		return nil, fmt.Errorf("%w: %s of %s %s are spent or set aside, and the next request to %s may cost %s",
			ErrMaxCost, s.taken, s.cap, s.currency, t.ID, most)
	}
	s.taken = s.taken.Add(most)
	return func(u *providers.Usage) {
		if u == nil {
			return
		}
		text, ok := t.Model.PricePerMillion.Cost(*u)
		if actual, err := decimal.NewFromString(text); ok && err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.taken = s.taken.Sub(most).Add(actual)
		}
	}, nil
}
