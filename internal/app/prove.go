package app

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/command"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/tasks"
)

// ranBySystem is who ran a contract that nobody asked for.
const ranBySystem = "docket (at start)"

// prover runs the contract suites of the built-in demo targets that are a fallback, so that the fallback works on a fresh machine. Real
// targets cost money: those are run on purpose.
type prover struct {
	*parts
	recorder command.Recorder
	now      clock
}

// A pass is renewed before it expires, so that the fallback of a gateway that runs for weeks does not close by age.
const (
	renewEvery  = time.Hour
	renewBefore = 2 * renewEvery
)

func newProver(p *parts, now clock) prover {
	return prover{parts: p, recorder: p.recorder(now), now: now}
}

// keep proves what is left to prove and then renews it until ctx is done. held gives the versions that are in use.
func (p prover) keep(ctx context.Context, versions []*tasks.Definition, held func(context.Context) ([]*tasks.Definition, error)) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		if err := p.fallbacks(ctx, versions); err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "demo contracts", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, err := held(ctx)
		if err != nil {
			p.log.WarnContext(ctx, "demo contracts", "error", err)
			continue
		}
		versions = now
	}
}

// status is the gate's answer, but a pass that is about to expire counts as stale.
func (p prover) status(ctx context.Context, d *tasks.Definition, target string) (gate.Decision, error) {
	a, err := p.check(ctx, d, target)
	if err == nil && a.Allowed && a.ExpiresAt != nil && a.ExpiresAt.Before(p.now().Add(renewBefore)) {
		a.Allowed, a.State = false, gate.Stale
	}
	return a, err
}

// fallbacks proves the demo targets that are a fallback of one of the versions.
func (p prover) fallbacks(ctx context.Context, versions []*tasks.Definition) error {
	pick := func(d *tasks.Definition) (targets []string) {
		for _, t := range p.registry.Targets() {
			if t.Config.Kind == config.KindDemo && slices.Contains(d.Fallbacks, t.ID) {
				targets = append(targets, t.ID)
			}
		}
		return targets
	}
	return p.withRunner(ranBySystem, p.now, func(runner *contracts.Runner) error {
		ran, err := command.Refresh(ctx, p.suitesFor(ctx, versions, slog.LevelWarn), pick, p.status, eager{runner}, p.recorder)
		for _, r := range ran {
			p.log.InfoContext(ctx, "contract", "task", r.Task, "target", r.Target, "passed", r.Passed)
		}
		return err
	})
}
