package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/tasks"
)

// ranBySystem is who ran a contract that nobody asked for.
const ranBySystem = "docket (at start)"

// prover runs the contract suites of the built-in demo targets, so that the fallback works on a fresh machine. Real
// targets cost money: those are run on purpose.
type prover struct {
	*parts
	runner   *contracts.Runner
	recorder *gate.Recorder
}

func newProver(p *parts, now func() time.Time) prover {
	return prover{parts: p, runner: contracts.NewRunner(contracts.FromRegistry(p.registry), ranBySystem, now),
		recorder: gate.NewRecorder(p.store.Client(), now)}
}

// fallbacks proves the demo targets that are a fallback of one of the versions.
func (p prover) fallbacks(ctx context.Context, versions []*tasks.Definition) error {
	return p.each(ctx, versions, func(d *tasks.Definition, target string) bool { return slices.Contains(d.Fallbacks, target) })
}

// rest runs the other demo targets, so that their status can be read too. Some of them take their time-outs.
func (p prover) rest(ctx context.Context, versions []*tasks.Definition) error {
	return p.each(ctx, versions, func(d *tasks.Definition, target string) bool { return !slices.Contains(d.Fallbacks, target) })
}

func (p prover) each(ctx context.Context, versions []*tasks.Definition, want func(*tasks.Definition, string) bool) error {
	var errs []error
	for _, d := range versions {
		suite, ok := p.suite(d)
		if !ok {
			continue
		}
		for _, t := range p.registry.Targets() {
			if t.Config.Kind != config.KindDemo || !want(d, t.ID) {
				continue
			}
			if err := p.prove(ctx, suite, t.ID); err != nil {
				errs = append(errs, fmt.Errorf("run the contract of %s at %s: %w", d.Name, t.ID, err))
			}
		}
	}
	return errors.Join(errs...)
}

// suite is a version with the cases of today: those are not part of a version.
func (p prover) suite(d *tasks.Definition) (contracts.Suite, bool) {
	for _, s := range p.suites {
		if s.Task.Name == d.Name {
			s.Task = d
			return s, true
		}
	}
	return contracts.Suite{}, false
}

// prove runs a suite unless its result is known and current.
func (p prover) prove(ctx context.Context, s contracts.Suite, target string) error {
	d, err := p.gate.Check(ctx, p.store.Client(), s.Task, target)
	if err != nil {
		return err
	}
	if d.State == gate.Passed || d.State == gate.Failed {
		return nil
	}
	res, err := p.runner.Run(ctx, s, target, report.Live, 0)
	if err != nil {
		return err
	}
	p.log.InfoContext(ctx, "contract", "task", s.Task.Name, "target", target, "passed", res.Passed)
	return p.recorder.Record(ctx, res)
}
