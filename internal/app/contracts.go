package app

import (
	"context"
	"errors"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/cassette"
	"github.com/docket-gateway/docket/contracts/faults"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/internal/operation"
	"github.com/docket-gateway/docket/internal/roundtrip"
	"github.com/docket-gateway/docket/internal/transport"
)

// withRunner lends a runner of contracts with all that its checks need. What it started meanwhile, beside this process's database, ends
// before withRunner returns.
func (p *parts) withRunner(ranBy string, now clock, use func(*contracts.Runner) error) error {
	runner, end := p.newRunner(ranBy, now)
	return errors.Join(use(runner), end())
}

// newRunner is withRunner for one that is used longer than a call: end ends what it started.
func (p *parts) newRunner(ranBy string, now clock) (runner *contracts.Runner, end func() error) {
	trips := roundtrip.New(roundtrip.Options{
		Lease: p.cfg.Lease, MaxInput: int(p.cfg.Limits.Input), Graph: p.graphOptions(), Logger: p.log,
	})
	return contracts.NewRunner(contracts.Deps{
		Targets: contracts.FromRegistry(p.registry), Wires: cassette.New(cassette.Options{Registry: p.registry, Now: now}),
		RoundTrips: trips, Faults: faults.New(p.registry), RanBy: ranBy, Now: now,
	}), trips.Close
}

// graphOptions are those of the endpoint.
func (p *parts) graphOptions() graph.Options {
	l := p.cfg.Limits
	return graph.Options{
		Limits:    operation.Limits{Depth: l.Depth, Tokens: l.ParserTokens, Aliases: l.Aliases, Complexity: l.Complexity},
		Transport: transport.Options{BodyLimit: int64(l.Body)},
		Logger:    p.log,
	}
}

// eager runs contracts with more requests at once than a provider would be asked to bear.
type eager struct{ *contracts.Runner }

// atOnce is enough for all requests of a shipped task, of which each is simulated and takes a tenth of a second.
const atOnce = 128

func (e eager) Run(ctx context.Context, s contracts.Suite, target string, o contracts.Options) (report.Result, *contracts.Evidence, error) {
	o.Concurrency = atOnce
	return e.Runner.Run(ctx, s, target, o)
}
