package contracts

import (
	"fmt"

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
	return Endpoint{Target: t, ConfigDigest: digest}, ok
}

// Digests tells the gate what this process would use now. It does not change.
type Digests struct {
	registry *providers.Registry
	cases    map[[2]string]string // by task and target: the gate is asked for every attempt
}

// NewDigests takes the configured targets and the loaded suites.
func NewDigests(r *providers.Registry, suites []Suite) (Digests, error) {
	d := Digests{registry: r, cases: map[[2]string]string{}}
	for _, s := range suites {
		for _, t := range r.Targets() {
			digest, err := s.CasesDigest(t.ID)
			if err != nil {
				return Digests{}, fmt.Errorf("the cases of the task %s: %w", s.Task.Name, err)
			}
			d.cases[[2]string{s.Task.Name, t.ID}] = digest
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
