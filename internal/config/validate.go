package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docket-gateway/docket/internal/loopback"
)

const (
	minute = time.Minute
	day    = 24 * time.Hour
)

var (
	kinds = []string{KindOpenAI, KindAnthropic, KindGemini, KindOpenAICompatible, KindDemo}
	// needsKey are the kinds that never answer without a key.
	needsKey = []string{KindOpenAI, KindAnthropic, KindGemini}

	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	modelName    = regexp.MustCompile(`^[!-~]{1,200}$`) // as package providers and the targets of tasks have it
	currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)
	tokenizer    = regexp.MustCompile(`^[!-~]{0,255}$`)
	// Capitals only: most providers' keys would pass for a variable's name otherwise, and names are printed.
	variableName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,254}$`)
)

// Kinds returns the kinds of provider that a configuration may name.
func Kinds() []string { return slices.Clone(kinds) }

func (l *loader) validate(c *Config) {
	l.listen(c.Listen)
	l.database("database", c.Database.Reveal())
	l.databaseDirect(c)
	l.auth(c.Auth)
	if len(c.Tasks) == 0 {
		l.problem("tasks", "must name at least one folder")
	}
	for i, t := range c.Tasks {
		path := fmt.Sprintf("tasks[%d]", i)
		if t == "" {
			l.problem(path, "must name a folder")
		} else if slices.Contains(c.Tasks[:i], t) {
			l.problem(path, "is named twice")
		}
	}
	if len(c.Providers) == 0 {
		l.problem("providers", "must hold at least one provider")
	}
	for i, p := range c.Providers {
		path := fmt.Sprintf("providers[%d]", i)
		l.provider(path, p)
		if slices.ContainsFunc(c.Providers[:i], func(o Provider) bool { return o.Name == p.Name }) {
			l.problem(path+".name", "%q is already the name of another provider", p.Name)
		}
	}
	l.duration("lease", c.Lease, time.Second, 10*minute)
	l.duration("shutdown_timeout", c.ShutdownTimeout, 0, 10*minute)
	l.duration("shutdown_delay", c.ShutdownDelay, 0, c.ShutdownTimeout)
	l.number("max_attempts", c.MaxAttempts, 1, 10_000)
	if e := c.Webhooks.SecretEnv; e != "" && !variableName.MatchString(e) {
		l.problem("webhooks.secret_env", "must be the name of an environment variable, in capitals, not a secret")
	}
	l.contracts(c.Contracts)
	if c.Retention.Age != 0 {
		l.duration("retention.age", c.Retention.Age, minute, 3650*day)
	}
	l.number("retention.batch", c.Retention.Batch, 1, 1000)
	l.duration("retention.interval", c.Retention.Interval, time.Second, day)
	l.limits(c.Limits)
	l.allowedOrigins(c.AllowedOrigins)
	if c.TrustedDocuments.Required && c.TrustedDocuments.Manifest == "" {
		l.problem("trusted_documents.required", "needs trusted_documents.manifest")
	}
	l.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	l.oneOf("log.format", c.Log.Format, "text", "json")
}

func (l *loader) listen(address string) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		l.problem("listen", "must be host:port, such as 127.0.0.1:8080 or [::1]:8080")
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		l.problem("listen", "the port must be a number from 0 to 65535")
	}
}

// database never repeats what it was given: a password may stand anywhere in a malformed address.
func (l *loader) database(path, address string) {
	if file, ok := strings.CutPrefix(address, "sqlite://"); ok {
		switch {
		case file == "":
			l.problem(path, "sqlite:// must be followed by a file's path")
		case strings.ContainsAny(file, "?#"):
			l.problem(path, "a SQLite path takes no parameters")
		case strings.HasPrefix(file, ":"):
			l.problem(path, "must be a file: jobs in memory would not survive a restart")
		}
		return
	}
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		l.problem(path, "must begin with sqlite:// or postgres://")
		return
	}
	if _, err := url.Parse(address); err != nil {
		l.problem(path, "is not a valid postgres:// address (special characters in a password are written as %%40 and the like)")
	}
}

// databaseDirect is only another way to the same PostgreSQL.
func (l *loader) databaseDirect(c *Config) {
	const path = "database_direct"
	direct := c.DatabaseDirect.Reveal()
	switch {
	case direct == "":
	case strings.HasPrefix(direct, "sqlite://") || strings.HasPrefix(c.Database.Reveal(), "sqlite://"):
		l.problem(path, "is for PostgreSQL alone")
	default:
		l.database(path, direct)
	}
}

func (l *loader) provider(path string, p Provider) {
	if !providerName.MatchString(p.Name) {
		l.problem(path+".name", "must be 1 to 63 lower case letters, digits, - or _, beginning with a letter or digit")
	}
	l.oneOf(path+".kind", p.Kind, kinds...)
	l.endpoint(path, p)
	l.protocol(path, p)
	l.duration(path+".total_timeout", p.TotalTimeout, time.Millisecond, day)
	l.duration(path+".ack_timeout", p.AckTimeout, time.Millisecond, min(10*minute, p.TotalTimeout))
	l.duration(path+".idle_timeout", p.IdleTimeout, time.Millisecond, min(time.Hour, p.TotalTimeout))
	l.duration(path+".linger", p.Linger, 0, day)
	l.duration(path+".presume_dead_after", p.PresumeDeadAfter, 0, 7*day)
	l.number(path+".max_concurrency", p.MaxConcurrency, 1, 10_000)
	l.number(path+".circuit_breaker.failures", p.CircuitBreaker.Failures, 0, 1000)
	l.duration(path+".circuit_breaker.open_for", p.CircuitBreaker.OpenFor, time.Second, time.Hour)
	if !currencyCode.MatchString(p.Currency) {
		l.problem(path+".currency", "must be an ISO 4217 code in capitals, such as USD")
	}
	if len(p.Models) == 0 {
		l.problem(path+".models", "must hold at least one model")
	}
	for i, m := range p.Models {
		at := fmt.Sprintf("%s.models[%d]", path, i)
		l.model(at, m)
		if slices.ContainsFunc(p.Models[:i], func(o Model) bool { return o.Name == m.Name }) {
			l.problem(at+".name", "%q is already the name of another model", m.Name)
		}
	}
}

func (l *loader) endpoint(path string, p Provider) {
	if p.Kind == KindDemo {
		if p.BaseURL != "" {
			l.problem(path+".base_url", "must be left out: demo is simulated and calls nobody")
		}
		if p.APIKeyEnv != "" {
			l.problem(path+".api_key_env", "must be left out: demo is simulated and calls nobody")
		}
		if p.APIKeyFile != "" {
			l.problem(path+".api_key_file", "must be left out: demo is simulated and calls nobody")
		}
		return
	}
	l.baseURL(path+".base_url", p.BaseURL)
	switch {
	case p.APIKeyEnv != "" && p.APIKeyFile != "":
		l.problem(path+".api_key_file", "api_key_env says already where the key is")
	case p.APIKeyFile != "":
	case p.APIKeyEnv == "":
		if slices.Contains(needsKey, p.Kind) {
			l.problem(path+".api_key_env", "must name the environment variable that holds the key, or api_key_file the file")
		}
	case !variableName.MatchString(p.APIKeyEnv):
		// Not repeated: somebody may have put the key itself here.
		l.problem(path+".api_key_env", "must be the name of an environment variable, in capitals, not a key")
	}
}

// protocol refuses settings that the kind does not have: somebody would believe in them.
func (l *loader) protocol(path string, p Provider) {
	of := func(key string, set bool, kinds ...string) {
		if set && !slices.Contains(kinds, p.Kind) {
			l.problem(path+"."+key, "is a setting of the kinds %s alone", strings.Join(kinds, ", "))
		}
	}
	of("api", p.API != "", KindOpenAI)
	of("background", p.Background, KindOpenAI)
	of("strict_schema", p.StrictSchema != "", KindOpenAI, KindOpenAICompatible)
	of("response_format", p.ResponseFormat != "", KindOpenAICompatible)
	of("stream_usage", p.StreamUsage != "", KindOpenAICompatible)
	of("max_tokens_field", p.MaxTokensField != "", KindOpenAICompatible)
	if p.ResponseFormat != "" {
		l.oneOf(path+".response_format", p.ResponseFormat, FormatSchema, FormatObject, FormatNone)
		if p.ResponseFormat != FormatSchema && p.StrictSchema == "true" {
			l.problem(path+".strict_schema", "needs response_format: json_schema")
		}
	}
	if p.MaxTokensField != "" {
		l.oneOf(path+".max_tokens_field", p.MaxTokensField, "max_tokens", "max_completion_tokens")
	}
	for i, m := range p.Models {
		of(fmt.Sprintf("models[%d].reasoning", i), m.Reasoning == "true", KindOpenAI, KindAnthropic, KindGemini, KindOpenAICompatible)
		at := fmt.Sprintf("models[%d].structured_output", i)
		of(at, m.StructuredOutput != "", KindAnthropic)
		if m.StructuredOutput != "" {
			l.oneOf(path+"."+at, m.StructuredOutput, StructuredNative, StructuredTool)
		}
	}
	if p.Idempotent && p.Kind == KindAnthropic {
		l.problem(path+".idempotent", "cannot be true: Anthropic knows no idempotency key, and a request that is sent again runs again")
	}
	if p.API != "" {
		l.oneOf(path+".api", p.API, APIResponses, APIChat)
	}
	if p.Background && p.API == APIChat {
		l.problem(path+".background", "needs api: responses")
	}
}

func (l *loader) baseURL(path, raw string) {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		l.problem(path, "must be set, such as https://api.example.com/v1")
	case err != nil || u.Host == "" || u.Hostname() == "":
		l.problem(path, "is not a URL such as https://api.example.com/v1")
	case u.User != nil:
		l.problem(path, "must not hold a user or password; name a key by api_key_env")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		l.problem(path, "must not hold a query or fragment")
	case u.Scheme == "https":
	case u.Scheme != "http" || !loopback.Host(u.Host):
		l.problem(path, "must be https except on loopback")
	}
}

func (l *loader) model(path string, m Model) {
	if !modelName.MatchString(m.Name) {
		l.problem(path+".name", "must be 1 to 200 printable ASCII characters without spaces")
	}
	l.number(path+".context_window", m.ContextWindow, 0, 100_000_000)
	l.number(path+".max_output_tokens", m.MaxOutputTokens, 0, 100_000_000)
	if m.ContextWindow > 0 && m.MaxOutputTokens > m.ContextWindow {
		l.problem(path+".max_output_tokens", "must not be above context_window (%d)", m.ContextWindow)
	}
	if !tokenizer.MatchString(m.Tokenizer) {
		l.problem(path+".tokenizer", "must be at most 255 printable ASCII characters without spaces")
	}
	switch price := m.PricePerMillion; {
	case (price.Input == "") != (price.Output == ""):
		l.problem(path+".price_per_million", "must hold both input and output, or be left out")
	case price.Input == "" && price.CachedInput != "":
		l.problem(path+".price_per_million.cached_input", "needs input and output beside it")
	}
}

func (l *loader) oneOf(path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		l.problem(path, "%q is not one of %s", value, strings.Join(allowed, ", "))
	}
}

func (l *loader) duration(path string, d, low, high time.Duration) {
	if d < low || d > high {
		l.problem(path, "%s is not between %s and %s", d, low, high)
	}
}

func (l *loader) number(path string, n, low, high int) {
	if n < low || n > high {
		l.problem(path, "%d is not between %d and %d", n, low, high)
	}
}

func (l *loader) size(path string, b, low, high Bytes) {
	if b < low || b > high {
		l.problem(path, "%s is not between %s and %s", b, low, high)
	}
}
