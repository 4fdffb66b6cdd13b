// Package config reads Docket's configuration: the built-in defaults, then one optional YAML file, then the environment.
// It is strict, because a key that is silently ignored is a setting that somebody believes in.
//
// It imports nothing of this module but internal/loopback; internal/app maps it to what the other packages take.
package config

import "time"

// Config is the whole configuration. Every key, its bounds and its environment variable stand in docs/configuration.md.
type Config struct {
	Listen          string        `yaml:"listen"`           // host:port
	Database        DSN           `yaml:"database"`         // sqlite://path or postgres://…
	DatabaseDirect  DSN           `yaml:"database_direct"`  // postgres://…, past a pooler; empty: Database
	Auth            Auth          `yaml:"auth"`             //
	Tasks           []string      `yaml:"tasks"`            // folders of task definitions, at least one
	Providers       []Provider    `yaml:"providers"`        // at least one, names unique
	Lease           time.Duration `yaml:"lease"`            // 1s to 10m
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"` // 0s to 10m
	ShutdownDelay   time.Duration `yaml:"shutdown_delay"`   // 0s to ShutdownTimeout
	MaxAttempts     int           `yaml:"max_attempts"`     // 1 to 10000
	Webhooks        Webhooks      `yaml:"webhooks"`
	Contracts       Contracts     `yaml:"contracts"`
	Retention       Retention     `yaml:"retention"`
	Limits          Limits        `yaml:"limits"`
	Log             Log           `yaml:"log"`

	AllowedOrigins   []string         `yaml:"allowed_origins"` // of pages that may use the endpoint, each once; may be empty
	TrustedDocuments TrustedDocuments `yaml:"trusted_documents"`
	Introspection    bool             `yaml:"introspection"`

	// Warnings are for the log at start: what was read and cannot have any effect. They hold no values.
	Warnings []string `yaml:"-"`
}

// Provider is one configured provider; its models are the targets name/model.
type Provider struct {
	Name             string         `yaml:"name"`               // lower case letters, digits, - and _; at most 63
	Kind             string         `yaml:"kind"`               // one of Kinds
	BaseURL          string         `yaml:"base_url"`           // https, or http on loopback
	APIKeyEnv        string         `yaml:"api_key_env"`        // the name of an environment variable, never a key
	APIKeyFile       string         `yaml:"api_key_file"`       // the path of a file with the key, in place of APIKeyEnv
	AckTimeout       time.Duration  `yaml:"ack_timeout"`        // 1ms to 10m
	IdleTimeout      time.Duration  `yaml:"idle_timeout"`       // 1ms to 1h
	TotalTimeout     time.Duration  `yaml:"total_timeout"`      // 1ms to 24h, not below the two above
	Linger           time.Duration  `yaml:"linger"`             // 0s to 24h
	PresumeDeadAfter time.Duration  `yaml:"presume_dead_after"` // 0s (off) to 168h
	Idempotent       bool           `yaml:"idempotent"`
	MaxConcurrency   int            `yaml:"max_concurrency"` // 1 to 10000
	CircuitBreaker   CircuitBreaker `yaml:"circuit_breaker"`
	Currency         string         `yaml:"currency"` // of the models' prices, an ISO 4217 code
	// ProxyFromEnvironment: HTTPS_PROXY and NO_PROXY are followed. They are ignored otherwise.
	ProxyFromEnvironment bool   `yaml:"proxy_from_environment"`
	API                  string `yaml:"api"`           // responses or chat, of kind openai alone; empty is responses
	Background           bool   `yaml:"background"`    // of kind openai with responses alone
	StrictSchema         Choice `yaml:"strict_schema"` // of kinds openai (true if left out) and openai-compatible (false if left out)
	// Of kind openai-compatible alone, what servers differ in.
	ResponseFormat string `yaml:"response_format"`  // json_schema, json_object or none; empty is json_schema
	StreamUsage    Choice `yaml:"stream_usage"`     // true if left out
	MaxTokensField string `yaml:"max_tokens_field"` // max_tokens or max_completion_tokens; empty: by the model's name
	// CallbackSecretEnv is the name of an environment variable, never a secret; empty: no callbacks are taken.
	CallbackSecretEnv string  `yaml:"callback_secret_env"`
	Models            []Model `yaml:"models"` // at least one, names unique

	// APIKey is what the variable that APIKeyEnv names, or the file APIKeyFile, held when the configuration was loaded; it is
	// not a key of the configuration.
	APIKey Secret `yaml:"-"`
	// Place is where the provider stands in the file, such as providers[3], once others were left out; else empty.
	Place string `yaml:"-"`
	// CallbackSecrets are what the variable that CallbackSecretEnv names held, in its order; one at least if it was set.
	CallbackSecrets []Secret `yaml:"-"`
}

// CircuitBreaker says when a target gets no more requests for a while.
type CircuitBreaker struct {
	Failures int           `yaml:"failures"` // in a row; 0 (off) to 1000
	OpenFor  time.Duration `yaml:"open_for"` // 1s to 1h
}

// Model is one model of a provider.
type Model struct {
	Name            string `yaml:"name"`              // 1 to 200 printable ASCII characters without spaces
	ContextWindow   int    `yaml:"context_window"`    // tokens, 0 is not known
	MaxOutputTokens int    `yaml:"max_output_tokens"` // tokens, 0 is not known
	Tokenizer       string `yaml:"tokenizer"`         // may be empty
	Reasoning       Choice `yaml:"reasoning"`         // not of kind demo: takes no temperature. False if left out, of kind openai-compatible by the name
	// StructuredOutput is native or tool, of kind anthropic alone; empty is native.
	StructuredOutput string `yaml:"structured_output"`
	PricePerMillion  Prices `yaml:"price_per_million"` //
}

// Prices are per million tokens; input and output or none.
type Prices struct {
	Input       Price `yaml:"input"`
	CachedInput Price `yaml:"cached_input"` // empty: the same as Input
	Output      Price `yaml:"output"`
}

// Webhooks say whether and where completions are told.
type Webhooks struct {
	SecretEnv    string `yaml:"secret_env"` // the name of an environment variable, never a secret; may be empty
	AllowPrivate bool   `yaml:"allow_private"`

	// Secrets are what the variable that SecretEnv names held, in its order; none if it was not set.
	Secrets []Secret `yaml:"-"`
}

// Contracts say whose results are taken over, and which contracts run by themselves.
type Contracts struct {
	TrustedKeys []string      `yaml:"trusted_keys"` // files with public keys, each once; may be empty
	Recheck     string        `yaml:"recheck"`      // off, fallbacks or route
	Before      time.Duration `yaml:"before"`       // 1h to 720h
	MaxCost     Price         `yaml:"max_cost"`     // of one run, in the currency of the target's prices; empty: no cap
}

// Retention says when finished jobs are removed.
type Retention struct {
	Age      time.Duration `yaml:"age"`      // 0s (off), or 1m to 87600h since a job's last event
	Batch    int           `yaml:"batch"`    // 1 to 1000
	Interval time.Duration `yaml:"interval"` // 1s to 24h
}

// TrustedDocuments says which operations are known, and whether there are others.
type TrustedDocuments struct {
	Manifest string `yaml:"manifest"` // a file; empty: none
	Required bool   `yaml:"required"` // needs a manifest
}

// Limits bound what one request may ask for, and one owner altogether.
type Limits struct {
	Body         Bytes         `yaml:"body"`          // 1KiB to 64MiB
	BodyTimeout  time.Duration `yaml:"body_timeout"`  // 1s to 10m
	Depth        int           `yaml:"depth"`         // 1 to 1000
	Input        Bytes         `yaml:"input"`         // 1B to body
	ParserTokens int           `yaml:"parser_tokens"` // 100 to 1000000
	Aliases      int           `yaml:"aliases"`       // 1 to 10000
	Complexity   int           `yaml:"complexity"`    // 1 to 1000000

	OperationsPerSocket int           `yaml:"operations_per_socket"` // 1 to 10000, at once
	SocketsPerOwner     int           `yaml:"sockets_per_owner"`     // 0 (off) to 1000000, at once, in one process
	SocketLifetime      time.Duration `yaml:"socket_lifetime"`       // 0s (off), or 1s to 720h
	RequestsPerMinute   int           `yaml:"requests_per_minute"`   // 0 (off) to 1000000, of one owner
	Burst               int           `yaml:"burst"`                 // 1 to 1000000, of one owner at once
	OpenJobsPerOwner    int           `yaml:"open_jobs_per_owner"`   // 0 (off) to 1000000
}

// Log says what is logged and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // text, json
}

// The kinds of provider.
const (
	KindOpenAI           = "openai"
	KindAnthropic        = "anthropic"
	KindGemini           = "gemini"
	KindOpenAICompatible = "openai-compatible"
	KindDemo             = "demo"
)

// The APIs of KindOpenAI.
const (
	APIResponses = "responses"
	APIChat      = "chat"
)

// The ways in which KindAnthropic asks for an output schema.
const (
	StructuredNative = "native"
	StructuredTool   = "tool"
)

// How KindOpenAICompatible asks for an output schema.
const (
	FormatSchema = "json_schema"
	FormatObject = "json_object"
	FormatNone   = "none"
)

// What Contracts.Recheck may be.
const (
	RecheckOff       = "off"
	RecheckFallbacks = "fallbacks"
	RecheckRoute     = "route"
)

// Default is the configuration of a machine that has none: SQLite in the working directory and simulated targets.
func Default() *Config {
	demo := defaultProvider()
	demo.Name, demo.Kind = "demo", KindDemo
	// demo/fax falls silent until idle_timeout: short, so that a first look at UNKNOWN costs seconds.
	demo.AckTimeout, demo.IdleTimeout, demo.TotalTimeout, demo.Linger = 5*time.Second, 5*time.Second, 30*time.Second, 30*time.Second
	demo.CircuitBreaker.Failures = 0 // and its silence is no outage
	for _, name := range []string{"inkjet", "laser", "fax"} {
		demo.Models = append(demo.Models, Model{Name: name, ContextWindow: 8192, MaxOutputTokens: 2048})
	}
	return &Config{
		Listen:          "127.0.0.1:8080",
		Database:        NewDSN("sqlite://docket.db"),
		Auth:            defaultAuth(),
		Tasks:           []string{"./contracts/tasks"},
		Providers:       []Provider{demo},
		Lease:           15 * time.Second,
		ShutdownTimeout: 25 * time.Second,
		MaxAttempts:     100,
		Webhooks:        Webhooks{SecretEnv: "DOCKET_WEBHOOK_SECRET"}, //nolint:gosec // the name of a variable
		Contracts:       Contracts{Recheck: RecheckOff, Before: 24 * time.Hour},
		Retention:       Retention{Batch: 100, Interval: time.Minute},
		Limits: Limits{
			Body: 1 << 20, BodyTimeout: 30 * time.Second, Depth: 32, Input: 256 << 10, ParserTokens: 10_000, Aliases: 100, Complexity: 10_000,
			OperationsPerSocket: 100, SocketsPerOwner: 1000, SocketLifetime: 24 * time.Hour, Burst: 60,
		},
		Log:           Log{Level: "info", Format: "text"},
		Introspection: true,
	}
}

// defaultProvider holds what an entry of providers has unless it says otherwise.
func defaultProvider() Provider {
	return Provider{
		AckTimeout: 10 * time.Second, IdleTimeout: 20 * time.Second, TotalTimeout: 120 * time.Second, Linger: 120 * time.Second,
		MaxConcurrency: 32, Currency: "USD", CircuitBreaker: CircuitBreaker{Failures: 5, OpenFor: time.Minute},
	}
}
