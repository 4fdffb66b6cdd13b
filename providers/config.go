package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/docket-gateway/docket/internal/loopback"
)

// Config is one configured provider. A loader starts from Defaults, since a zero Linger means that nothing is waited for.
type Config struct {
	Place   string // in the configuration, for errors; empty: its place in the list, such as providers[0]
	Name    string // first part of a target, without a slash
	Kind    string // which factory builds its sender
	BaseURL string // https, or http on loopback; empty for kinds that send nothing
	APIKey  string // secret: never logged, stored or digested

	AckTimeout       time.Duration // from the start to the acknowledgement; 0 is the default
	IdleTimeout      time.Duration // longest silence after the acknowledgement; 0 is the default
	TotalTimeout     time.Duration // one absolute deadline from the start; 0 is the default
	Linger           time.Duration // how long a late answer is listened for after a time-out; 0 is not at all
	PresumeDeadAfter time.Duration // documented bound on how long the provider can go on executing; 0 is off
	Idempotent       bool          // the provider promises to run one key once
	MaxConcurrency   int           // requests at once; 0 is the default
	CircuitBreaker   CircuitBreaker
	Currency         string // of the models' prices, ISO 4217; empty is the default

	// StrictSchema asks for strict schema adherence. Strict mode accepts only a part of JSON Schema and many compatible
	// servers do not know it. Output is validated here in either case.
	StrictSchema bool

	// What compatible servers differ in. The zero values are what most of them take.
	ResponseFormat  string // how the output schema is asked for: FormatSchema, FormatObject or FormatNone; empty is FormatSchema
	OmitStreamUsage bool   // the server does not know stream_options, and usage may not be told
	MaxTokensField  string // max_tokens or max_completion_tokens; empty: by the model's name

	ProxyFromEnvironment bool // HTTPS_PROXY and NO_PROXY of the environment are followed

	API        string // which of a kind's protocols is spoken; empty is the kind's default
	Background bool   // requests are created to run at the provider by themselves and can be asked for by a handle

	Models []Model
}

// CircuitBreaker says when a target of the provider gets no more requests for a while. Each target has its own.
type CircuitBreaker struct {
	Failures int           // so many in a row open it; 0 is off
	OpenFor  time.Duration // then one request tries whether the target works again; without a meaning when it is off
}

// Model is one model of a provider. Its name may hold slashes.
type Model struct {
	Name            string
	ContextWindow   int // tokens; 0 is not known
	MaxOutputTokens int // tokens; 0 is not known
	Tokenizer       string
	PricePerMillion Price
	Reasoning       bool // thinks before it answers, and takes no temperature

	StructuredOutput string // how a kind that has several ways asks for the schema; empty is the kind's default
}

// What Config.ResponseFormat may be.
const (
	FormatSchema = "json_schema" // with the schema
	FormatObject = "json_object" // any JSON object
	FormatNone   = "none"        // response_format is not sent
)

// What Config.MaxTokensField may be.
const (
	FieldMaxTokens           = "max_tokens"
	FieldMaxCompletionTokens = "max_completion_tokens"
)

// Price is what a million tokens cost, as decimal strings so that no cost goes through a double. Empty is not known.
type Price struct {
	Input       string
	CachedInput string // of input tokens that the provider took from its cache; empty: the same as Input
	Output      string
}

// The defaults of Config's time-outs, concurrency and circuit breaker.
const (
	DefaultAckTimeout     = 10 * time.Second
	DefaultIdleTimeout    = 20 * time.Second
	DefaultTotalTimeout   = 120 * time.Second
	DefaultLinger         = 120 * time.Second
	DefaultMaxConcurrency = 32
	DefaultCurrency       = "USD"

	DefaultCircuitFailures = 5
	DefaultCircuitOpenFor  = 60 * time.Second
)

// Defaults is what a provider's configuration starts from.
func Defaults() Config {
	return Config{
		AckTimeout:     DefaultAckTimeout,
		IdleTimeout:    DefaultIdleTimeout,
		TotalTimeout:   DefaultTotalTimeout,
		Linger:         DefaultLinger,
		MaxConcurrency: DefaultMaxConcurrency,
		CircuitBreaker: CircuitBreaker{Failures: DefaultCircuitFailures, OpenFor: DefaultCircuitOpenFor},
		Currency:       DefaultCurrency,
	}
}

// WithDefaults fills the settings for which zero has no meaning of its own. Linger, PresumeDeadAfter and
// CircuitBreaker stay.
func (c Config) WithDefaults() Config {
	if c.AckTimeout == 0 {
		c.AckTimeout = DefaultAckTimeout
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = DefaultIdleTimeout
	}
	if c.TotalTimeout == 0 {
		c.TotalTimeout = DefaultTotalTimeout
	}
	if c.MaxConcurrency == 0 {
		c.MaxConcurrency = DefaultMaxConcurrency
	}
	if c.Currency == "" {
		c.Currency = DefaultCurrency
	}
	return c
}

// Endpoint names where requests of this configuration go: "sha256:" and 64 hex digits. Equal endpoints know the same
// idempotency keys, as far as the configuration tells; the account behind the API key is not part of it.
func (c Config) Endpoint() string {
	sum := sha256.Sum256([]byte(c.Name + "\n" + c.Kind + "\n" + strings.TrimRight(c.BaseURL, "/")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ConfigError is one mistake in a provider's configuration. Problem never holds a secret.
type ConfigError struct {
	Path    string // e.g. providers[0].base_url
	Problem string
}

func (e *ConfigError) Error() string { return e.Path + ": " + e.Problem }

var (
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)
	modelName    = regexp.MustCompile(`^[!-~]{1,200}$`)
	plainDecimal = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,12})?$`)
	currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)
)

// Validate returns every mistake of c as joined ConfigErrors under the given path. A kind that needs no base URL may
// leave it empty; whether one is needed is for the kind's factory to say.
func (c Config) Validate(path string) error {
	var errs []error
	add := func(field, problem string, args ...any) {
		errs = append(errs, &ConfigError{Path: path + "." + field, Problem: fmt.Sprintf(problem, args...)})
	}
	if !providerName.MatchString(c.Name) {
		add("name", "must be 1 to 63 lower-case letters, digits, dots, dashes or underscores")
	}
	if c.BaseURL != "" {
		if problem := checkBaseURL(c.BaseURL); problem != "" {
			add("base_url", "%s", problem)
		}
	}
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		add("api_key", "what api_key_env or api_key_file leads to holds white space or characters that a header cannot carry")
	}
	for _, d := range []struct {
		field string
		value time.Duration
		zero  bool
	}{
		{"ack_timeout", c.AckTimeout, false}, {"idle_timeout", c.IdleTimeout, false}, {"total_timeout", c.TotalTimeout, false},
		{"linger", c.Linger, true}, {"presume_dead_after", c.PresumeDeadAfter, true},
	} {
		if d.value < 0 || d.value == 0 && !d.zero {
			add(d.field, "must be a positive duration, not %s", d.value)
		}
	}
	if c.MaxConcurrency < 1 {
		add("max_concurrency", "must be at least 1, not %d", c.MaxConcurrency)
	}
	switch b := c.CircuitBreaker; {
	case b.Failures < 0:
		add("circuit_breaker.failures", "must not be negative")
	case b.Failures > 0 && b.OpenFor <= 0:
		add("circuit_breaker.open_for", "must be a positive duration, not %s", b.OpenFor)
	}
	if !currencyCode.MatchString(c.Currency) {
		add("currency", "must be an ISO 4217 code such as USD")
	}
	if len(c.Models) == 0 {
		add("models", "must name at least one model")
	}
	seen := map[string]int{}
	for i, m := range c.Models {
		at := fmt.Sprintf("models[%d]", i)
		if !modelName.MatchString(m.Name) {
			add(at+".name", "must be 1 to 200 printable ASCII characters without spaces")
		} else if first, ok := seen[m.Name]; ok {
			add(at+".name", "%q is already the name of models[%d]", m.Name, first)
		} else {
			seen[m.Name] = i
		}
		if m.ContextWindow < 0 {
			add(at+".context_window", "must not be negative")
		}
		if m.MaxOutputTokens < 0 {
			add(at+".max_output_tokens", "must not be negative")
		}
		for field, price := range map[string]string{
			"input": m.PricePerMillion.Input, "cached_input": m.PricePerMillion.CachedInput, "output": m.PricePerMillion.Output,
		} {
			if price != "" && !plainDecimal.MatchString(price) {
				add(at+".price_per_million."+field, "must be a decimal number such as 0.15")
			}
		}
	}
	return errors.Join(errs...)
}

// checkBaseURL returns what is wrong with a base URL. Keys and prompts travel to it, so it must be encrypted unless it
// stays on this machine; user information would be a secret in the digest.
func checkBaseURL(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "is not a URL" // the parse error would quote it
	case u.User != nil:
		return "must not hold a user name or password"
	case u.RawQuery != "" || u.Fragment != "":
		return "must not have a query or fragment"
	case u.Host == "" || u.Hostname() == "":
		return "must have a host"
	case u.Scheme == "https":
		return ""
	case u.Scheme == "http" && loopback.Host(u.Host):
		return ""
	default:
		return "must be https, except on loopback"
	}
}

// canonicalPrice makes 0.60 and 0.6 one price.
func canonicalPrice(s string) string {
	if r, ok := new(big.Rat).SetString(s); ok {
		return r.RatString()
	}
	return s
}

// decimalPrice is a canonical price as people write it.
func decimalPrice(s string) string {
	if r, ok := new(big.Rat).SetString(s); ok {
		if places, exact := r.FloatPrec(); exact {
			return r.FloatString(places)
		}
	}
	return s
}
