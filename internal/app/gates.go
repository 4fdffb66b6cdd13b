package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/ent/taskversion"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/recheck"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/telemetry"
	"github.com/docket-gateway/docket/internal/viewer"
)

// ranByRecheck is who ran a contract whose result was about to expire.
const ranByRecheck = "docket (re-check)"

// recorder stores results and sees at once what they change at the gate.
type recorder struct {
	*gate.Recorder
	parts *parts
	now   clock
}

func (p *parts) recorder(now clock) recorder {
	return recorder{Recorder: gate.NewRecorder(p.store.Client(), now), parts: p, now: now}
}

func (p *parts) watcher() *gate.Watcher { return gate.NewWatcher(p.gate, p.store.Client(), p.log) }

// Record stores one result.
func (r recorder) Record(ctx context.Context, res report.Result) error {
	if err := r.Recorder.Record(ctx, res); err != nil {
		return err
	}
	r.look(ctx, res)
	return nil
}

// Import stores all of the results or none, and says of each whether it was stored now.
func (r recorder) Import(ctx context.Context, list []gate.Import) ([]bool, error) {
	stored, err := r.Recorder.Import(ctx, list)
	if err != nil {
		return nil, err
	}
	for _, in := range list {
		r.look(ctx, in.Result)
	}
	return stored, nil
}

// look fails in no way that the result would suffer from: the look that comes each minute finds what this one did not.
func (r recorder) look(ctx context.Context, res report.Result) {
	d, err := r.parts.definition(ctx, res.Basis.TaskVersion)
	if err == nil && d != nil {
		var w *gate.Watcher
		if w, err = r.watcher(res); err == nil {
			_, err = w.Look(ctx, d, res.Target)
		}
	}
	if err != nil {
		r.parts.log.WarnContext(ctx, "look at the gate", "task", res.Task, "target", res.Target, "error", err)
	}
}

// watcher knows the goldens of now where the result is for others than this process began with: an update has written them meanwhile,
// and the old ones would have the gate closed for what was just added.
func (r recorder) watcher(res report.Result) (*gate.Watcher, error) {
	if digest, ok := r.parts.digests.CasesDigest(res.Task, res.Target); !ok || digest == res.Basis.CasesDigest {
		return r.parts.watcher(), nil
	}
	suites, err := loadSuites(r.parts.cfg)
	if err != nil {
		return nil, err
	}
	digests, err := contracts.NewDigests(r.parts.registry, suites)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the task
	}
	return gate.NewWatcher(gate.New(digests, r.now), r.parts.store.Client(), r.parts.log), nil
}

// definition returns a task version that is configured or stored, nil if it is neither.
func (p *parts) definition(ctx context.Context, digest string) (*tasks.Definition, error) {
	for _, s := range p.suites {
		if s.Task.Digest == digest {
			return s.Task, nil
		}
	}
	rows, err := p.store.Client().TaskVersion.Query().Where(taskversion.ID(digest)).All(viewer.NewSystemContext(ctx))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return tasks.Parse(rows[0].Content)
}

// gates are the answers for the metrics.
func (p *parts) gates(ctx context.Context) (telemetry.Gates, error) {
	var out telemetry.Gates
	for _, s := range p.suites {
		for _, target := range s.Task.Route() {
			d, err := p.check(ctx, s.Task, target)
			if err != nil {
				return telemetry.Gates{}, err
			}
			out.Open = append(out.Open, telemetry.GateOpen{Task: s.Task.Name, Target: target, Open: d.Allowed})
		}
	}
	changes, err := gate.Changes(ctx, p.store.Client())
	if err != nil {
		return telemetry.Gates{}, err
	}
	for _, c := range changes {
		out.Changes = append(out.Changes, telemetry.GateChanges{Task: c.Task, Target: c.Target, State: string(c.To), Count: c.Count})
	}
	return out, nil
}

// holder tells which versions are in use, once the jobs are there: they need the queue, and the queue needs its parts.
type holder struct {
	versions func(context.Context) ([]*tasks.Definition, error)
}

// newRechecks looks after the gates of this process' configuration.
func (p *parts) newRechecks(held *holder, now clock) *recheck.Service {
	c := p.cfg.Contracts
	return recheck.New(recheck.Policy{Scope: recheck.Scope(c.Recheck), Before: c.Before, MaxCost: string(c.MaxCost)}, recheck.Deps{
		Suites: func(ctx context.Context) ([]contracts.Suite, error) {
			versions, err := held.versions(ctx)
			if err != nil {
				return nil, fmt.Errorf("list the versions in use: %w", err)
			}
			return p.suitesFor(ctx, versions, slog.LevelDebug), nil
		},
		// The demo's contracts cost nothing and are renewed whatever the policy is, see prover.
		Real: func(target string) bool {
			t, ok := p.registry.Lookup(target)
			return ok && t.Config.Kind != config.KindDemo
		},
		Check: p.check, Look: p.watcher().Look, Record: p.recorder(now).Record,
		Runner: rechecker{p, now}, Logger: p.log, Now: func() time.Time { return now() },
	})
}

// rechecker runs a contract with round trips and faults of its own, for each run: they are hours apart.
type rechecker struct {
	parts *parts
	now   clock
}

func (r rechecker) Run(ctx context.Context, s contracts.Suite, target string, o contracts.Options) (res report.Result, ev *contracts.Evidence, err error) {
	err = r.parts.withRunner(ranByRecheck, r.now, func(runner *contracts.Runner) error {
		var err error
		res, ev, err = runner.Run(ctx, s, target, o)
		return err
	})
	return res, ev, err
}

// suitesFor gives each version the cases of today, since those are not part of a version. A version whose task is gone, or whose
// inputs have changed, has none, and keeps its gates closed; level is how loudly that is said.
func (p *parts) suitesFor(ctx context.Context, versions []*tasks.Definition, level slog.Level) []contracts.Suite {
	var out []contracts.Suite
	for _, d := range versions {
		for _, s := range p.suites {
			if s.Task.Name != d.Name {
				continue
			}
			s, err := s.For(d)
			if err != nil {
				p.log.Log(ctx, level, "no contract for a version that open jobs hold", "error", err)
				continue
			}
			out = append(out, s)
		}
	}
	return out
}
