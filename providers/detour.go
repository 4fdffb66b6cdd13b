package providers

import (
	"fmt"
	"time"
)

// Detour is how a target is built anew so that its requests go by another way: to a server on loopback that records, replays or
// disturbs them.
type Detour struct {
	// BaseURL stands in for the configured one. It is checked as that is: https, or http on loopback.
	BaseURL string
	// Key stands in for the configured key. Empty: the configured one is sent.
	Key string
	// Patience is the acknowledgement, idle and total time-out, for a server that only passes on what is whole. 0: as configured.
	Patience time.Duration
}

// Detour builds the target anew with a sender and a tokenizer of its own. The target's name and model stay, and its Config
// has the detour's address and time-outs. ConfigDigest goes on to speak of the configured target. The configured key goes nowhere
// but into the requests.
func (r *Registry) Detour(target string, d Detour) (Target, error) {
	i, ok := r.byID[target]
	if !ok {
		return Target{}, fmt.Errorf("no configured provider serves %q", target)
	}
	return r.detours[i](d)
}

// Redact replaces the key of the target's provider in a text, if the key is long enough not to be a word by chance.
func (r *Registry) Redact(target, text string) string {
	i, ok := r.byID[target]
	if !ok {
		return text
	}
	return r.secrets[i]().Redact(text)
}

// HoldsKey says whether a text holds the key of the target's provider, as it stands or in a string of its JSON.
func (r *Registry) HoldsKey(target string, text []byte) bool {
	i, ok := r.byID[target]
	return ok && r.secrets[i]().In(text)
}

// build makes the provider's nth target.
func (d Detour) build(c Config, n int, factory Factory) (Target, error) {
	c.BaseURL = d.BaseURL
	if d.Key != "" {
		c.APIKey = d.Key
	}
	if d.Patience != 0 {
		c.AckTimeout, c.IdleTimeout, c.TotalTimeout = d.Patience, d.Patience, d.Patience
	}
	path := "detour of " + c.Name
	if err := c.Validate(path); err != nil {
		return Target{}, err
	}
	list, err := newTargets(c, path, factory)
	if err != nil {
		return Target{}, err
	}
	return list[n], nil
}
