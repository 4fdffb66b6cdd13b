package contracts

import "github.com/docket-gateway/docket/providers"

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
	cases    map[string]string
}

// NewDigests takes the configured targets and the cases of the loaded suites.
func NewDigests(r *providers.Registry, suites []Suite) Digests {
	d := Digests{registry: r, cases: make(map[string]string, len(suites))}
	for _, s := range suites {
		d.cases[s.Task.Name] = s.CasesDigest
	}
	return d
}

// ConfigDigest is over the target's provider configuration and its adapter's version; ok is false if no provider serves it.
func (d Digests) ConfigDigest(target string) (digest string, ok bool) {
	return d.registry.ConfigDigest(target)
}

// CasesDigest is over the task's cases; ok is false if no suite of that task is loaded.
func (d Digests) CasesDigest(task string) (digest string, ok bool) {
	digest, ok = d.cases[task]
	return digest, ok
}
