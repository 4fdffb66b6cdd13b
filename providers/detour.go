package providers

import "time"

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
	return r.rebuild(target, d.Key, func(c *Config) {
		c.BaseURL = d.BaseURL
		if d.Patience != 0 {
			c.AckTimeout, c.IdleTimeout, c.TotalTimeout = d.Patience, d.Patience, d.Patience
		}
	})
}

// secret is that of the target's provider, empty if the target is not configured.
func (r *Registry) secret(target string) Secret {
	t, ok := r.Lookup(target)
	if !ok {
		return ""
	}
	return r.secrets[t.Provider]()
}

// Redact replaces the key of the target's provider in a text, if the key is long enough not to be a word by chance.
func (r *Registry) Redact(target, text string) string { return r.secret(target).Redact(text) }

// HoldsKey says whether a text holds the key of the target's provider, as it stands or in a string of its JSON.
func (r *Registry) HoldsKey(target string, text []byte) bool { return r.secret(target).In(text) }
