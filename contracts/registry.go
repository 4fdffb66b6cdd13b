package contracts

import (
	"fmt"
	"maps"

	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/providers"
)

// FromRegistry lets a runner ask the configured targets.
func FromRegistry(r *providers.Registry) Targets { return registryTargets{r} }

type registryTargets struct{ registry *providers.Registry }

func (r registryTargets) Endpoint(target string) (Endpoint, bool) {
	t, ok := r.registry.Lookup(target)
	if !ok {
		return Endpoint{}, false
	}
	digest, ok := r.registry.ConfigDigest(target)
	return Endpoint{Target: t, ConfigDigest: digest, ConfigParts: r.registry.ConfigParts(target)}, ok
}

// Digests tells the gate what this process would use now. It does not change.
type Digests struct {
	registry *providers.Registry
	// By task and target: the gate is asked for every attempt.
	cases map[[2]string]string
	parts map[[2]string]report.Parts // of the cases
}

// NewDigests takes the configured targets and the loaded suites.
func NewDigests(r *providers.Registry, suites []Suite) (Digests, error) {
	d := Digests{registry: r, cases: map[[2]string]string{}, parts: map[[2]string]report.Parts{}}
	for _, s := range suites {
		for _, t := range r.Targets() {
			digest, err := s.CasesDigest(t.ID)
			if err != nil {
				return Digests{}, fmt.Errorf("the cases of the task %s: %w", s.Task.Name, err)
			}
			key := [2]string{s.Task.Name, t.ID}
			d.cases[key], d.parts[key] = digest, report.Parts{}
			if err := s.caseParts(d.parts[key], t.ID); err != nil {
				return Digests{}, fmt.Errorf("the cases of the task %s: %w", s.Task.Name, err)
			}
		}
	}
	return d, nil
}

// ConfigDigest is over the target's provider configuration and its adapter's version; ok is false if no provider serves it.
func (d Digests) ConfigDigest(target string) (digest string, ok bool) {
	return d.registry.ConfigDigest(target)
}

// CasesDigest is over the task's cases and what is recorded for them at the target; ok is false if no suite of that task is
// loaded.
func (d Digests) CasesDigest(task, target string) (digest string, ok bool) {
	digest, ok = d.cases[[2]string{task, target}]
	return digest, ok
}

// Parts are what the digests of the task version and the two above are made of. They are put together when they are asked for.
func (d Digests) Parts(task *tasks.Definition, target string) report.Parts {
	parts := maps.Clone(d.parts[[2]string{task.Name, target}])
	if parts == nil {
		parts = report.Parts{}
	}
	taskParts(parts, task)
	providerParts(parts, d.registry.ConfigParts(target))
	return parts
}
