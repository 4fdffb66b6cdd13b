package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// DefaultPath is read when neither --config nor DOCKET_CONFIG names a file; it alone may be missing.
const DefaultPath = "docket.yaml"

// ErrInvalid is wrapped by every error about what a file or variable says, as against one that could not be read.
var ErrInvalid = errors.New("invalid configuration")

// Load reads the configuration: defaults, then the file, then the environment (entries "NAME=value", as os.Environ
// gives them). The path is, in this order: path, DOCKET_CONFIG, docket.yaml; a file that was asked for by name must exist.
// An error lists everything that is wrong, each with its key's path and where it was set; it never holds a value that
// may be a secret.
func Load(path string, environ []string) (*Config, error) {
	env := newEnvironment(environ)
	named := true
	if path == "" {
		path = env.values[envConfig]
	}
	if path == "" {
		path, named = DefaultPath, false
	}

	cfg := Default()
	l := &loader{origins: map[string]string{}}
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		l.file(cfg, path, text)
	case !named && errors.Is(err, fs.ErrNotExist):
	default:
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	l.environment(cfg, env)
	// What could not be read has left its default behind: validating that would only repeat the complaint.
	if len(l.problems) == 0 {
		l.validate(cfg)
		l.callbackSecrets(cfg.Providers, env)
		l.webhookSecrets(&cfg.Webhooks, env.values[cfg.Webhooks.SecretEnv])
	}
	if len(l.problems) > 0 {
		return nil, fmt.Errorf("%w:\n  %s", ErrInvalid, strings.Join(l.problems, "\n  "))
	}
	for i := range cfg.Providers {
		p := &cfg.Providers[i]
		// A key read from a mounted file often ends in a line break, which no header can carry.
		key := env.values[p.APIKeyEnv]
		if p.APIKeyFile != "" {
			key = keyFile(p.APIKeyFile)
		}
		p.APIKey = NewSecret(strings.TrimSpace(key))
	}
	cfg.Warnings = append(env.unknown(cfg), cfg.Auth.idle()...)
	if w := cfg.Webhooks; w.SecretEnv != "" && w.SecretEnv != Default().Webhooks.SecretEnv && len(w.Secrets) == 0 {
		cfg.Warnings = append(cfg.Warnings, "webhooks.secret_env: the environment variable "+w.SecretEnv+" is not set, so no callbackUrl is taken")
	}
	return cfg, nil
}

// maxKeyFile bounds the file of a key, in bytes.
const maxKeyFile = 64 << 10

// keyFile returns what the file holds, nothing if it cannot be read: Usable complains where the key is needed.
func keyFile(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	key, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil || len(key) > maxKeyFile {
		return ""
	}
	return string(key)
}

// Missing is what a provider lacks that is not in the file: its API key or its callback secret.
type Missing struct {
	Provider string
	Problem  string // names the setting and the variable, never a value
}

// Usable returns the configuration without the providers that lack something, and what they lack. It is apart from Load, because
// `docket migrate`, `docket attempts` and `docket version` work without keys.
func (c *Config) Usable() (*Config, []Missing) {
	out := *c
	out.Providers = nil
	var missing []Missing
	for i, p := range c.Providers {
		var problem string
		switch {
		case p.APIKeyEnv != "" && !p.APIKey.IsSet():
			problem = fmt.Sprintf("providers[%d].api_key_env: the environment variable %s is not set", i, p.APIKeyEnv)
		case p.APIKeyFile != "" && !p.APIKey.IsSet(): // not repeated: somebody may have put the key itself there
			problem = fmt.Sprintf("providers[%d].api_key_file: the file cannot be read, is empty or larger than 64 KiB", i)
		case !sendable(p.APIKey) && p.APIKeyEnv != "":
			problem = fmt.Sprintf("providers[%d].api_key_env: the environment variable %s %s", i, p.APIKeyEnv, notSendable)
		case !sendable(p.APIKey):
			problem = fmt.Sprintf("providers[%d].api_key_file: the file %s", i, notSendable)
		case p.CallbackSecretEnv != "" && len(p.CallbackSecrets) == 0:
			problem = fmt.Sprintf("providers[%d].callback_secret_env: the environment variable %s is not set", i, p.CallbackSecretEnv)
		default:
			out.Providers = append(out.Providers, p)
			continue
		}
		missing = append(missing, Missing{Provider: p.Name, Problem: problem})
	}
	return &out, missing
}

const notSendable = "holds white space inside of the key, or characters that a header cannot carry"

// sendable says whether a key can stand in a header. A key that cannot is as good as none: no provider has given it out.
func sendable(key Secret) bool {
	return !strings.ContainsFunc(key.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' })
}

// loader collects problems, and where each key was set.
type loader struct {
	origins  map[string]string // path to "docket.yaml:12" or "DOCKET_LISTEN"
	problems []string
}

// problem notes what is wrong with the key at path. The nearest parent tells the place of a key that is missing.
func (l *loader) problem(path, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if path != "" {
		msg = path + ": " + msg
	}
	for p := path; ; {
		if at, ok := l.origins[p]; ok {
			msg = at + ": " + msg
			break
		}
		if p == "" {
			break
		}
		p = p[:max(strings.LastIndexAny(p, ".["), 0)]
	}
	l.problems = append(l.problems, msg)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
