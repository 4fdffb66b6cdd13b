package providers

// Redact replaces the key of the target's provider in a text, if the key is long enough not to be a word by chance.
func (r *Registry) Redact(target, text string) string { return r.secret(target).Redact(text) }

// HoldsKey says whether a text holds the key of the target's provider, as it stands or in a string of its JSON. A key that may be a
// word by chance is not looked for.
func (r *Registry) HoldsKey(target string, text []byte) bool { return r.secret(target).In(text) }

func (r *Registry) secret(target string) Secret {
	t, ok := r.Lookup(target)
	if !ok {
		return ""
	}
	return Secret(r.secrets[t.Provider])
}
