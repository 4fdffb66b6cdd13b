package providers

import "fmt"

// At returns the target as it would be with another base URL: the same provider's configuration and key, with an adapter that is
// built anew by its factory. It is for what stands between an adapter and its provider, such as a recorder; the registry itself
// does not change.
func (r *Registry) At(target, baseURL string) (Target, error) {
	return r.With(target, func(c *Config) { c.BaseURL = baseURL })
}

// With is At for any other change. The change is not shown the key, and the provider's name and models are not its to change. A
// key that it sets stands in for one that is not configured, as in a replay, and for no other.
func (r *Registry) With(target string, change func(*Config)) (Target, error) {
	t, ok := r.Lookup(target)
	if !ok {
		return Target{}, fmt.Errorf("%s is not configured", target)
	}
	c := t.Config
	change(&c)
	c.Name, c.Kind, c.Models = t.Config.Name, t.Config.Kind, t.Config.Models
	if key := r.secrets[c.Name]; key != "" {
		c.APIKey = key
	}
	if err := c.Validate(target); err != nil {
		return Target{}, err
	}
	targets, err := newTargets(c, target, r.factories[c.Kind])
	if err != nil {
		return Target{}, err
	}
	for _, t := range targets {
		if t.ID == target {
			return t, nil
		}
	}
	return Target{}, fmt.Errorf("%s is not configured", target) // not reachable: the models are the same
}
