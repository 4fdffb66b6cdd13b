package providers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/docket-gateway/docket/providers/tokenizer"
)

// Factory builds the sender of one configured provider. It opens no connection.
type Factory func(Config) (Provider, error)

// Target is a model of a configured provider, ready to be sent to.
type Target struct {
	ID       string // provider/model
	Provider string
	Model    Model
	Config   Config // the provider's, defaults filled in; its APIKey is empty
	Sender   Provider
	// Tokenizer counts the model's tokens: a tokenizer.Local, or one that asks the provider. Nil: none is configured.
	Tokenizer tokenizer.Counter
}

// Registry holds the configured targets. It does not change after NewRegistry and is safe for concurrent use.
type Registry struct {
	targets   []Target
	byID      map[string]int
	secrets   map[string]string // keys by provider, for At
	factories map[string]Factory
}

// NewRegistry checks every configuration and builds its sender with the factory of its kind. It returns all mistakes
// at once, as joined ConfigErrors that name the place, such as providers[0].base_url.
func NewRegistry(configs []Config, factories map[string]Factory) (*Registry, error) {
	r := &Registry{byID: map[string]int{}, secrets: map[string]string{}, factories: factories}
	var errs []error
	names := map[string]int{}
	for i, c := range configs {
		path := cmp.Or(c.Place, fmt.Sprintf("providers[%d]", i))
		c = c.WithDefaults()
		bad := false
		if err := c.Validate(path); err != nil {
			errs, bad = append(errs, err), true
		}
		if first, ok := names[c.Name]; ok {
			errs, bad = append(errs, &ConfigError{path + ".name", fmt.Sprintf("%q is already the name of providers[%d]", c.Name, first)}), true
		} else {
			names[c.Name] = i
		}
		factory, ok := factories[c.Kind]
		if !ok {
			kinds := strings.Join(slices.Sorted(maps.Keys(factories)), ", ")
			errs, bad = append(errs, &ConfigError{path + ".kind", fmt.Sprintf("%q is not one of: %s", c.Kind, kinds)}), true
		}
		if bad {
			continue
		}
		targets, err := newTargets(c, path, factory)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.secrets[c.Name] = c.APIKey
		for _, t := range targets {
			r.byID[t.ID] = len(r.targets)
			r.targets = append(r.targets, t)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return r, nil
}

// newTargets builds a provider's targets, which share its sender.
func newTargets(c Config, path string, factory Factory) ([]Target, error) {
	counters, err := newTokenizers(c, path)
	if err != nil {
		return nil, err
	}
	sender, err := factory(c)
	if err != nil {
		return nil, underPath(path, err)
	}
	sender = Secret(c.APIKey).keep(sender)
	public := c
	public.APIKey = ""
	targets := make([]Target, len(c.Models))
	for i, m := range c.Models {
		targets[i] = Target{ID: c.Name + "/" + m.Name, Provider: c.Name, Model: m, Config: public, Sender: sender, Tokenizer: counters[i]}
	}
	return targets, nil
}

// newTokenizers returns one for each model, nil where none is configured.
func newTokenizers(c Config, path string) ([]tokenizer.Counter, error) {
	list := make([]tokenizer.Counter, len(c.Models))
	var errs []error
	for i, m := range c.Models {
		if m.Tokenizer == "" {
			continue
		}
		t, err := tokenizer.New(m.Tokenizer, tokenizer.Options{
			BaseURL: c.BaseURL, APIKey: c.APIKey, Model: m.Name, Timeout: c.TotalTimeout, ProxyFromEnvironment: c.ProxyFromEnvironment,
		})
		if err != nil {
			errs = append(errs, &ConfigError{fmt.Sprintf("%s.models[%d].tokenizer", path, i), err.Error()})
			continue
		}
		list[i] = t
	}
	return list, errors.Join(errs...)
}

// underPath puts a factory's ConfigError, whose path is a field's name, under the provider's path.
func underPath(path string, err error) error {
	var ce *ConfigError
	if errors.As(err, &ce) {
		return &ConfigError{Path: path + "." + ce.Path, Problem: ce.Problem}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Lookup returns the target of that name. The provider is what stands before the first slash.
func (r *Registry) Lookup(target string) (Target, bool) {
	i, ok := r.byID[target]
	if !ok {
		return Target{}, false
	}
	return r.targets[i], true
}

// Targets returns all targets in the order of the configuration.
func (r *Registry) Targets() []Target { return slices.Clone(r.targets) }

// ConfigDigest returns "sha256:" and 64 hex digits over everything of the target's configuration that a contract run
// depends on: target, kind, base URL, API, background, adapter version, strict schemas, the model's entry (window, output limit,
// tokenizer, prices, reasoning, structured output), response format, usage in streams, field of the token limit, the currency and the time-outs within which an answer must come. Left out are the key, which may be
// rotated freely, and what no contract run can observe: linger, presume_dead_after, idempotent, max_concurrency and circuit_breaker.
func (r *Registry) ConfigDigest(target string) (string, bool) {
	t, ok := r.Lookup(target)
	if !ok {
		return "", false
	}
	doc, err := json.Marshal(t.digestible())
	if err != nil {
		return "", false // not reachable: strings and numbers only
	}
	sum := sha256.Sum256(doc)
	return "sha256:" + hex.EncodeToString(sum[:]), true
}

// digestible is what ConfigDigest is over. A struct's fields are encoded in their order, so equal configurations give equal
// bytes; a field that is renamed, moved or added closes every gate, unless one that is added is left out while it is empty. The
// config tag is the part's name.
type digestible struct {
	Target           string        `config:"name"`
	Kind             string        `config:"kind"`
	BaseURL          string        `config:"base_url"`
	Adapter          string        `config:"adapter"`
	StrictSchema     bool          `config:"strict_schema"`
	ContextWindow    int           `config:"context_window"`
	MaxOutputTokens  int           `config:"max_output_tokens"`
	Tokenizer        string        `config:"tokenizer"`
	InputPrice       string        `config:"price_per_million.input"`
	OutputPrice      string        `config:"price_per_million.output"`
	CachedInputPrice string        `config:"price_per_million.cached_input"`
	Currency         string        `config:"currency"`
	Ack              time.Duration `config:"ack_timeout"`
	Idle             time.Duration `config:"idle_timeout"`
	Total            time.Duration `config:"total_timeout"`
	API              string        `config:"api"`
	Background       bool          `config:"background"`
	Reasoning        bool          `config:"reasoning"`
	StructuredOutput string        `config:"structured_output"`
	ResponseFormat   string        `json:",omitempty" config:"response_format"`
	StreamUsage      string        `json:",omitempty" config:"stream_usage"` // "false", or empty
	MaxTokensField   string        `json:",omitempty" config:"max_tokens_field"`
}

func (t Target) digestible() digestible {
	streamUsage := ""
	if t.Config.OmitStreamUsage {
		streamUsage = "false"
	}
	return digestible{
		t.ID, t.Config.Kind, strings.TrimRight(t.Config.BaseURL, "/"), t.Sender.AdapterVersion(),
		t.Config.StrictSchema,
		t.Model.ContextWindow, t.Model.MaxOutputTokens,
		t.Model.Tokenizer,
		canonicalPrice(t.Model.PricePerMillion.Input), canonicalPrice(t.Model.PricePerMillion.Output),
		canonicalPrice(t.Model.PricePerMillion.CachedInput), t.Config.Currency,
		t.Config.AckTimeout, t.Config.IdleTimeout, t.Config.TotalTimeout,
		t.Config.API, t.Config.Background, t.Model.Reasoning, t.Model.StructuredOutput,
		t.Config.ResponseFormat, streamUsage, t.Config.MaxTokensField,
	}
}

// ConfigParts are what ConfigDigest is made of, as JSON by the names that the configuration has for them; the adapter's version is
// adapter. Parts that the digest leaves out while they are empty are not there then. Nil if no provider serves the target.
func (r *Registry) ConfigParts(target string) map[string]json.RawMessage {
	t, ok := r.Lookup(target)
	if !ok {
		return nil
	}
	d := t.digestible()
	d.InputPrice, d.OutputPrice, d.CachedInputPrice = decimalPrice(d.InputPrice), decimalPrice(d.OutputPrice), decimalPrice(d.CachedInputPrice)
	v := reflect.ValueOf(d)
	out := make(map[string]json.RawMessage, v.NumField())
	for i := range v.NumField() {
		if strings.HasSuffix(v.Type().Field(i).Tag.Get("json"), ",omitempty") && v.Field(i).IsZero() {
			continue
		}
		value := v.Field(i).Interface()
		if d, ok := value.(time.Duration); ok {
			value = d.String()
		}
		raw, err := json.Marshal(value)
		if err != nil {
			continue // not reachable: strings, numbers and booleans only
		}
		out[v.Type().Field(i).Tag.Get("config")] = raw
	}
	return out
}
