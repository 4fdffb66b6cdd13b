package campaign

import (
	"context"
	"fmt"
	"time"

	toxic "github.com/Shopify/toxiproxy/v2/client"
)

// What goes wrong. Each ends by itself.
const (
	kill          = "kill -9"
	burst         = "kill -9 of all"
	restart       = "restart"
	pause         = "pause beyond the lease"
	databaseStop  = "database restarted"
	databaseKill  = "database killed"
	databaseCut   = "database cut off"
	databaseHole  = "database silent"
	databaseSlow  = "database slow"
	databaseReset = "database connections reset"
	providerCut   = "provider cut off"
	providerHole  = "provider silent"
	providerSlow  = "provider slow"
	providerReset = "provider connections reset"
	providerLimit = "provider cut off after some bytes"
	requestLimit  = "requests cut off after some bytes"
	providerDrip  = "provider in slices"
)

var (
	processFaults  = []string{kill, restart, pause, burst, kill}
	providerFaults = []string{providerCut, providerHole, providerSlow, providerReset, providerLimit, requestLimit, providerDrip}
	databaseFaults = []string{databaseStop, databaseKill, databaseCut, databaseHole, databaseSlow, databaseReset}
)

// beyondLease is long enough for somebody else to take over.
const beyondLease = lease + time.Second

// strike lets a fault happen and returns when it is over.
func (f *fleet) strike(ctx context.Context, x fault) error {
	m := f.members[x.which%len(f.members)]
	names := []string{"fake", "mortal"}
	provider := f.providers[names[x.which%len(names)]]
	during := func(d time.Duration, g func(ctx context.Context) error) error {
		bound, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return g(bound)
	}
	upstream, downstream := "upstream", "downstream"
	switch x.kind {
	case kill:
		if err := m.kill(); err != nil {
			return err
		}
		return f.ensure(ctx, m)
	case burst:
		for _, m := range f.members {
			if err := m.kill(); err != nil {
				return err
			}
		}
		return f.start(ctx)
	case restart:
		if err := m.terminate(ctx); err != nil {
			return err
		}
		return f.ensure(ctx, m)
	case pause:
		return during(beyondLease, m.pause)
	case databaseStop:
		return f.cluster.Restart(ctx)
	case databaseKill:
		if err := f.cluster.Kill(); err != nil {
			return err
		}
		return f.cluster.Restart(ctx)
	case databaseCut:
		return during(x.lasts, m.database.cut)
	case databaseHole: // until somebody else has taken over
		return during(beyondLease, func(ctx context.Context) error {
			return m.database.afflict(ctx, "timeout", downstream, toxic.Attributes{"timeout": 0})
		})
	case databaseSlow:
		return during(2*x.lasts, func(ctx context.Context) error {
			return m.database.afflict(ctx, "latency", downstream, toxic.Attributes{"latency": 60, "jitter": 60})
		})
	case databaseReset:
		return during(x.lasts, func(ctx context.Context) error {
			return m.database.afflict(ctx, "reset_peer", downstream, toxic.Attributes{"timeout": 30})
		})
	case providerCut:
		return during(x.lasts, provider.cut)
	case providerHole:
		return during(x.lasts, func(ctx context.Context) error {
			return provider.afflict(ctx, "timeout", downstream, toxic.Attributes{"timeout": 0})
		})
	case providerSlow:
		return during(2*x.lasts, func(ctx context.Context) error {
			return provider.afflict(ctx, "latency", downstream, toxic.Attributes{"latency": 200, "jitter": 200})
		})
	case providerReset:
		return during(x.lasts, func(ctx context.Context) error {
			return provider.afflict(ctx, "reset_peer", downstream, toxic.Attributes{"timeout": 20})
		})
	case providerLimit:
		return during(x.lasts, func(ctx context.Context) error {
			return provider.afflict(ctx, "limit_data", downstream, toxic.Attributes{"bytes": 400})
		})
	case requestLimit:
		return during(x.lasts, func(ctx context.Context) error {
			return provider.afflict(ctx, "limit_data", upstream, toxic.Attributes{"bytes": 600})
		})
	case providerDrip:
		return during(2*x.lasts, func(ctx context.Context) error {
			return provider.afflict(ctx, "slicer", downstream, toxic.Attributes{"average_size": 7, "size_variation": 5, "delay": 200})
		})
	default:
		return fmt.Errorf("no such fault: %q", x.kind)
	}
}
