package app

import (
	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

// known answers for the configured targets.
type known struct{ *providers.Registry }

// Known reports whether this process can send to the target.
func (k known) Known(target string) bool {
	_, ok := k.Lookup(target)
	return ok
}

// Targets lists the configured targets.
func (k known) Targets() []graph.Target {
	var out []graph.Target
	for _, t := range k.Registry.Targets() {
		out = append(out, graph.Target{ID: t.ID, Provider: t.Provider, Model: t.Model.Name, Available: true})
	}
	return out
}

// prices are those of the configured targets.
type prices struct{ *providers.Registry }

// Cost is what the usage costs at the target.
func (p prices) Cost(target string, u jobs.Usage) (cost, currency string, ok bool) {
	t, found := p.Lookup(target)
	if !found {
		return "", "", false
	}
	cost, ok = t.Model.PricePerMillion.Cost(providers.Usage(u))
	return cost, t.Config.Currency, ok
}
