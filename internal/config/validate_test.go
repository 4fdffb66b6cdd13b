package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValidationRefuses(t *testing.T) {
	t.Parallel()
	provider := func(old, replacement string) string { return strings.Replace(minimal, old, replacement, 1) }
	with := func(entry string) string { return provider("    models", "    "+entry+"\n    models") }
	for name, c := range map[string]struct{ text, want string }{
		"ListenWithoutPort":        {"listen: localhost\n", "listen: must be host:port"},
		"ListenNamedPort":          {"listen: localhost:http\n", "listen: the port"},
		"ListenHighPort":           {"listen: localhost:65536\n", "listen: the port"},
		"DatabaseScheme":           {"database: docket.db\n", "database: must begin with"},
		"SQLiteWithoutPath":        {"database: sqlite://\n", "database: sqlite:// must be followed"},
		"SQLiteInMemory":           {"database: 'sqlite://:memory:'\n", "database: must be a file"},
		"SQLiteParameters":         {"database: sqlite://a.db?mode=memory\n", "database: a SQLite path takes no parameters"},
		"PostgresAddress":          {"database: postgres://h:x/db\n", "database: is not a valid postgres"},
		"AuthMode":                 {"auth: {mode: none}\n", `auth.mode: "none" is not one of dev`},
		"NoTasks":                  {"tasks: []\n", "tasks: must name at least one"},
		"EmptyTask":                {"tasks: ['']\n", "tasks[0]: must name a folder"},
		"TaskTwice":                {"tasks: [a, a]\n", "tasks[1]: is named twice"},
		"NoProviders":              {"providers: []\n", "providers: must hold at least one"},
		"ProviderTwice":            {minimal + strings.TrimPrefix(minimal, "providers:\n"), `providers[1].name: "local" is already`},
		"ProviderName":             {provider("name: local", "name: a/b"), "providers[0].name: must be"},
		"NoProviderName":           {provider("name: local", "idempotent: true"), "providers[0].name: must be"},
		"Kind":                     {provider("openai-compatible", "azure"), `providers[0].kind: "azure" is not one of openai`},
		"PlainHTTP":                {provider("http://127.0.0.1:1", "http://models.example"), "providers[0].base_url: must be https except on loopback"},
		"LoopbackLookalike":        {provider("http://127.0.0.1:1", "http://localhost.example"), "providers[0].base_url: must be https"},
		"Scheme":                   {provider("http://127.0.0.1:1", "ftp://127.0.0.1"), "providers[0].base_url: must be https"},
		"NoBaseURL":                {provider("    base_url: http://127.0.0.1:1/v1\n", ""), "providers[0].base_url: must be set"},
		"RelativeBaseURL":          {provider("http://127.0.0.1:1/v1", "/v1"), "providers[0].base_url: is not a URL"},
		"UserInBaseURL":            {provider("http://", "http://u:p@"), "providers[0].base_url: must not hold a user"},
		"QueryInBaseURL":           {provider("/v1", "/v1?key=1"), "providers[0].base_url: must not hold a query"},
		"KeyForKeyEnv":             {with("api_key_env: sk-abc"), "providers[0].api_key_env: must be the name"},
		"LowerCaseKeyEnv":          {with("api_key_env: AIzaSyabc"), "providers[0].api_key_env: must be the name"},
		"NoKeyEnv":                 {provider("openai-compatible", "anthropic"), "providers[0].api_key_env: must name"},
		"StrictSchemaWord":         {with("strict_schema: yes"), "providers[0].strict_schema: must be true or false"},
		"APIOfAnotherKind":         {with("api: chat"), "providers[0].api: is a setting of the kinds openai alone"},
		"BackgroundOfAnotherKind":  {with("background: true"), "providers[0].background: is a setting of the kinds openai alone"},
		"StrictSchemaOfDemo":       {"providers:\n  - {name: d, kind: demo, strict_schema: false, models: [{name: fax}]}\n", "providers[0].strict_schema: is a setting of the kinds openai, openai-compatible alone"},
		"ReasoningOfAnotherKind":   {"providers: [{name: d, kind: demo, models: [{name: m, reasoning: true}]}]\n", "providers[0].models[0].reasoning: is a setting of the kinds openai, anthropic, gemini, openai-compatible alone"},
		"FormatOfAnotherKind":      {openAI("response_format: none"), "providers[0].response_format: is a setting of the kinds openai-compatible alone"},
		"UsageOfAnotherKind":       {openAI("stream_usage: false"), "providers[0].stream_usage: is a setting of the kinds openai-compatible alone"},
		"LimitOfAnotherKind":       {openAI("max_tokens_field: max_tokens"), "providers[0].max_tokens_field: is a setting of the kinds openai-compatible alone"},
		"UnknownFormat":            {with("response_format: text"), `providers[0].response_format: "text" is not one of json_schema, json_object, none`},
		"UnknownLimit":             {with("max_tokens_field: n_predict"), `providers[0].max_tokens_field: "n_predict" is not one of max_tokens, max_completion_tokens`},
		"StrictWithoutSchema":      {with("response_format: json_object\n    strict_schema: true"), "providers[0].strict_schema: needs response_format: json_schema"},
		"StructuredOfAnotherKind":  {provider("{name: m}", "{name: m, structured_output: tool}"), "providers[0].models[0].structured_output: is a setting of the kinds anthropic alone"},
		"LongModelName":            {provider("{name: m}", "{name: "+strings.Repeat("m", 201)+"}"), "providers[0].models[0].name: must be 1 to 200 printable ASCII"},
		"UnknownStructuredOutput":  {strings.Replace(anthropic(""), "{name: m}", "{name: m, structured_output: prompt}", 1), `providers[0].models[0].structured_output: "prompt" is not one of native, tool`},
		"IdempotentAnthropic":      {anthropic("idempotent: true, "), "providers[0].idempotent: cannot be true"},
		"StrictSchemaOfAnthropic":  {anthropic("strict_schema: true, "), "providers[0].strict_schema: is a setting of the kinds openai, openai-compatible alone"},
		"UnknownAPI":               {openAI("api: realtime"), `providers[0].api: "realtime" is not one of responses, chat`},
		"BackgroundChat":           {openAI("api: chat, background: true"), "providers[0].background: needs api: responses"},
		"DemoWithBaseURL":          {provider("openai-compatible", "demo"), "providers[0].base_url: must be left out"},
		"DemoWithKey":              {strings.Replace(with("api_key_env: K"), "openai-compatible", "demo", 1), "providers[0].api_key_env: must be left out"},
		"DemoWithKeyFile":          {"providers: [{name: d, kind: demo, api_key_file: k, models: [{name: m}]}]\n", "providers[0].api_key_file: must be left out"},
		"TwoPlacesForTheKey":       {with("api_key_env: K\n    api_key_file: k"), "providers[0].api_key_file: api_key_env says already"},
		"ZeroTotalTimeout":         {with("total_timeout: 0s"), "providers[0].total_timeout: 0s is not between"},
		"ZeroAckTimeout":           {with("ack_timeout: 0s"), "providers[0].ack_timeout: 0s is not between"},
		"AckTimeoutAboveTotal":     {with("ack_timeout: 121s"), "providers[0].ack_timeout: 2m1s is not between 1ms and 2m0s"},
		"IdleTimeoutAboveTotal":    {with("idle_timeout: 121s"), "providers[0].idle_timeout: 2m1s is not between"},
		"LongLinger":               {with("linger: 25h"), "providers[0].linger: 25h0m0s is not between"},
		"LongPresumeDeadAfter":     {with("presume_dead_after: 169h"), "providers[0].presume_dead_after: 169h0m0s is not between"},
		"NoConcurrency":            {with("max_concurrency: 0"), "providers[0].max_concurrency: 0 is not between"},
		"NegativeFailures":         {with("circuit_breaker: {failures: -1}"), "providers[0].circuit_breaker.failures: -1 is not between 0 and 1000"},
		"OpenForNoTime":            {with("circuit_breaker: {open_for: 0s}"), "providers[0].circuit_breaker.open_for: 0s is not between 1s and 1h0m0s"},
		"CircuitBreakerSwitch":     {with("circuit_breaker: false"), "providers[0].circuit_breaker: must be a mapping of keys"},
		"CircuitBreakerKey":        {with("circuit_breaker: {window: 60s}"), "providers[0].circuit_breaker.window: unknown key"},
		"NoModels":                 {provider("[{name: m}]", "[]"), "providers[0].models: must hold at least one"},
		"ModelTwice":               {provider("[{name: m}]", "[{name: m}, {name: m}]"), `providers[0].models[1].name: "m" is already`},
		"ModelName":                {provider("{name: m}", "{name: 'a b'}"), "providers[0].models[0].name: must be"},
		"NegativeContextWindow":    {provider("{name: m}", "{name: m, context_window: -1}"), "providers[0].models[0].context_window: -1 is not"},
		"OutputAboveContextWindow": {provider("{name: m}", "{name: m, context_window: 5, max_output_tokens: 6}"), "models[0].max_output_tokens: must not be above context_window (5)"},
		"Tokenizer":                {provider("{name: m}", "{name: m, tokenizer: 'a b'}"), "providers[0].models[0].tokenizer: must be"},
		"HalfAPrice":               {provider("{name: m}", "{name: m, price_per_million: {input: 1}}"), "providers[0].models[0].price_per_million: must hold both"},
		"OnlyACachedPrice":         {provider("{name: m}", "{name: m, price_per_million: {cached_input: 1}}"), "providers[0].models[0].price_per_million.cached_input: needs input and output"},
		"Currency":                 {with("currency: eur"), "providers[0].currency: must be an ISO 4217 code"},
		"SmallBody":                {"limits: {body: 1023B}\n", "limits.body: 1023B is not between 1KiB and 64MiB"},
		"LargeBody":                {"limits: {body: 65MiB}\n", "limits.body: 65MiB is not between"},
		"InputAboveBody":           {"limits: {input: 2MiB}\n", "limits.input: 2MiB is not between 1B and 1MiB"},
		"ParserTokens":             {"limits: {parser_tokens: 1}\n", "limits.parser_tokens: 1 is not between"},
		"Aliases":                  {"limits: {aliases: 0}\n", "limits.aliases: 0 is not between"},
		"Complexity":               {"limits: {complexity: 0}\n", "limits.complexity: 0 is not between"},
		"OperationsPerSocket":      {"limits: {operations_per_socket: 0}\n", "limits.operations_per_socket: 0 is not between"},
		"SocketsPerOwner":          {"limits: {sockets_per_owner: -1}\n", "limits.sockets_per_owner: -1 is not between"},
		"BodyTimeout":              {"limits: {body_timeout: 0s}\n", "limits.body_timeout: 0s is not between"},
		"SocketLifetime":           {"limits: {socket_lifetime: 999ms}\n", "limits.socket_lifetime: 999ms is not between"},
		"RequestsPerMinute":        {"limits: {requests_per_minute: -1}\n", "limits.requests_per_minute: -1 is not between"},
		"Burst":                    {"limits: {burst: 0}\n", "limits.burst: 0 is not between"},
		"OpenJobsPerOwner":         {"limits: {open_jobs_per_owner: -1}\n", "limits.open_jobs_per_owner: -1 is not between"},
		"OriginTwice":              {"allowed_origins: [https://a.example, https://a.example]\n", "allowed_origins[1]: is named twice"},
		"AnyOrigin":                {"allowed_origins: ['*']\n", "allowed_origins[0]: must be one exact origin"},
		"OriginsOfADomain":         {"allowed_origins: ['https://*.example.com']\n", "allowed_origins[0]: must be one exact origin"},
		"OriginWithoutScheme":      {"allowed_origins: [app.example.com]\n", "allowed_origins[0]: must be an origin such as"},
		"OriginOfNobody":           {"allowed_origins: ['null']\n", "allowed_origins[0]: must be an origin such as"},
		"OriginWithPath":           {"allowed_origins: [https://app.example.com/]\n", "allowed_origins[0]: must hold no user, path"},
		"PlainOrigin":              {"allowed_origins: [http://app.example.com]\n", "allowed_origins[0]: must be https except on loopback"},
		"OriginInCapitals":         {"allowed_origins: [https://App.example.com]\n", "allowed_origins[0]: must be in lower case"},
		"OriginWithItsOwnPort":     {"allowed_origins: ['https://app.example.com:443']\n", "allowed_origins[0]: must leave out the scheme's own port"},
		"TrustWithoutManifest":     {"trusted_documents: {required: true}\n", "trusted_documents.required: needs trusted_documents.manifest"},
		"LongShutdown":             {"shutdown_timeout: 11m\n", "shutdown_timeout: 11m0s is not between"},
		"DelayAboveTimeout":        {"shutdown_timeout: 5s\nshutdown_delay: 6s\n", "shutdown_delay: 6s is not between 0s and 5s"},
		"DirectBesideSQLite":       {"database_direct: postgres://h/db\n", "database_direct: is for PostgreSQL alone"},
		"DirectSQLite":             {"database: postgres://h/db\ndatabase_direct: sqlite://x.db\n", "database_direct: is for PostgreSQL alone"},
		"DirectScheme":             {"database: postgres://h/db\ndatabase_direct: mysql://h/db\n", "database_direct: must begin with"},
		"LogLevel":                 {"log: {level: loud}\n", `log.level: "loud" is not one of`},
		"LogFormat":                {"log: {format: xml}\n", `log.format: "xml" is not one of`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(write(t, c.text), nil)
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestValidationAccepts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"Origins":        "allowed_origins: [https://app.example.com, 'http://localhost:5173', 'https://xn--bcher-kva.example:8443']\n",
		"NoLimits":       "limits: {sockets_per_owner: 0, socket_lifetime: 0s, requests_per_minute: 0, open_jobs_per_owner: 0}\n",
		"IPv6Listener":   "listen: '[::1]:8080'\n",
		"AnyPort":        "listen: 127.0.0.1:0\n",
		"AbsoluteSQLite": "database: sqlite:///var/lib/docket/docket.db\n",
		"PostgreSQL":     "database: postgresql://u:p@h/db?sslmode=require\n",
		"PastAPooler":    "database: postgres://h:6432/db\ndatabase_direct: postgres://h/db\n",
		"UnixSocket":     "database: postgres:///docket?host=/run/postgresql\n",
		"RemoteOverTLS":  strings.Replace(minimal, "http://127.0.0.1:1", "https://models.example", 1),
		"LocalhostName":  strings.Replace(minimal, "http://127.0.0.1:1", "http://localhost:11434", 1),
		"IPv6BaseURL":    strings.Replace(minimal, "http://127.0.0.1:1/v1", "'http://[::1]:1/v1'", 1),
		"ModelWithSlash": strings.Replace(minimal, "name: m", "name: meta-llama/Llama-3.1-8B", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(write(t, text), nil)
			require.NoError(t, err)
		})
	}
}

func openAI(settings string) string {
	return "providers:\n  - {name: o, kind: openai, base_url: \"https://api.openai.com/v1\", api_key_env: K, " + settings + ", models: [{name: m}]}\n"
}

func anthropic(settings string) string {
	return "providers:\n  - {name: a, kind: anthropic, base_url: \"https://api.anthropic.com\", api_key_env: K, " + settings + "models: [{name: m}]}\n"
}

func TestAnthropicsModels(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"", "native", "tool"} {
		text := anthropic("")
		if way != "" {
			text = strings.Replace(text, "{name: m}", "{name: m, reasoning: true, structured_output: "+way+"}", 1)
		}
		cfg, err := Load(write(t, text), nil)
		require.NoError(t, err)
		require.Equal(t, way, cfg.Providers[0].Models[0].StructuredOutput)
		require.Equal(t, way != "", cfg.Providers[0].Models[0].Reasoning.Or(false))
	}
}

func TestStrictSchemaIsLeftToTheKind(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]Choice{"api: chat": "", "strict_schema: false": "false", "strict_schema: true": "true"} {
		cfg, err := Load(write(t, openAI(settings)), nil)
		require.NoError(t, err)
		require.Equal(t, want, cfg.Providers[0].StrictSchema)
	}
	require.True(t, Choice("").Or(true))
	require.False(t, Choice("").Or(false))
	require.True(t, Choice("true").Or(false))
	require.False(t, Choice("false").Or(true))
}
