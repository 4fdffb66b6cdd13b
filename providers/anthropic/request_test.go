package anthropic_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/anthropic"
	"github.com/docket-gateway/docket/providers/anthropic/anthropictest"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/providertest"
)

// both runs f with both ways to ask for a schema.
func both(t *testing.T, f func(t *testing.T, a conformance.Adapter)) {
	for _, way := range []string{anthropic.StructuredNative, anthropic.StructuredTool} {
		t.Run(way, func(t *testing.T) { t.Parallel(); f(t, adapter(way)) })
	}
}

// sent sends the request and returns the outcome and the one body that came in, nil if none did.
func sent(t *testing.T, a conformance.Adapter, change func(*providers.Config), req providers.Request, behave ...providertest.Behaviour) (out providers.Outcome, body []byte) {
	t.Helper()
	conformance.Bubble(t, a, change, func(t *testing.T, b *conformance.Bundle) {
		b.Server.Enqueue(behave...)
		out = b.Sender.Send(t.Context(), req, b.Recorder)
		if log := b.Server.Log(); len(log) > 0 {
			require.Len(t, log, 1)
			body = log[0].Body
		} else {
			require.Empty(t, b.Recorder.Said)
		}
	})
	return out, body
}

func TestBoundOnTheOutput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ task, model, want int }{
		"OfTheTask":       {300, 0, 300},
		"OfTheModel":      {0, 200, 200},
		"TheLowerOne":     {300, 200, 200},
		"TheLowerOneToo":  {200, 300, 200},
		"NoneIsAnError":   {0, 0, 0},
		"BelowZeroAsNone": {-1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := conformance.Request()
			req.MaxOutputTokens = tc.task
			out, body := sent(t, adapter(""), func(c *providers.Config) { c.Models[0].MaxOutputTokens = tc.model }, req)
			if tc.want == 0 {
				require.Equal(t, providers.Failed, out.Kind)
				require.Equal(t, providers.Failure{Code: providers.CodeUnsupported,
					Message: "Anthropic requires a bound on the output: max_output_tokens of the task or of the model"}, *out.Failure)
				require.Nil(t, body)
				return
			}
			require.Equal(t, int64(tc.want), gjson.GetBytes(body, "max_tokens").Int())
		})
	}
}

func TestTemperature(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		temperature float64
		reasoning   bool
		want        string // "" is none
		code        string
	}{
		"Cold":         {0, false, "0", ""},
		"Warm":         {0.7, false, "0.7", ""},
		"AtTheBound":   {1, false, "1", ""},
		"AboveIt":      {1.2, false, "", providers.CodeUnsupported},
		"Reasoning":    {0.7, true, "", ""},
		"ReasoningHot": {1.2, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := conformance.Request()
			req.Temperature, req.Model = tc.temperature, "a-model"
			if tc.reasoning {
				req.Model = "reasoning-1" // to which the fake, as the API, takes no temperature
			}
			out, body := sent(t, adapter(""), func(c *providers.Config) {
				c.Models = append(c.Models, providers.Model{Name: req.Model, Reasoning: tc.reasoning})
			}, req)
			if tc.code != "" {
				require.Equal(t, providers.Failed, out.Kind)
				require.Equal(t, providers.Failure{Code: tc.code, Message: "Anthropic takes a temperature from 0 to 1, and the task's is 1.2"}, *out.Failure)
				require.Nil(t, body)
				return
			}
			require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
			require.Equal(t, tc.want, gjson.GetBytes(body, "temperature").Raw)
		})
	}
}

func TestReasoningModelThatIsNotConfiguredAsOne(t *testing.T) {
	t.Parallel()
	req := conformance.Request()
	req.Model = "reasoning-1"
	out, body := sent(t, adapter(""), nil, req)
	require.NotNil(t, body)
	require.Equal(t, providers.CodeBadRequest, out.Failure.Code)
}

func TestNoSystemPromptIsNoBlock(t *testing.T) {
	t.Parallel()
	req := conformance.Request()
	req.System = ""
	out, body := sent(t, adapter(""), nil, req)
	require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
	require.False(t, gjson.GetBytes(body, "system").Exists())
}

// A tool takes what structured outputs do not, to the byte and in its order.
func TestToolTakesTheSchemaAsItIs(t *testing.T) {
	t.Parallel()
	req := conformance.Request()
	req.Schema = []byte(`{"type":"object","required":["z"],"properties":{"z":{"minimum":12345678901234567890.10},"a":{"$ref":"#"},"m":{"type":"object","additionalProperties":{"type":"string"}}}}`)
	out, body := sent(t, adapter(anthropic.StructuredTool), nil, req, anthropictest.Says(`{"z":1}`))
	require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
	require.Equal(t, string(req.Schema), gjson.GetBytes(body, "tools.0.input_schema").Raw)
	require.JSONEq(t, `{"type":"tool","name":"answer","disable_parallel_tool_use":true}`, gjson.GetBytes(body, "tool_choice").Raw)
	require.False(t, gjson.GetBytes(body, "output_config").Exists())
}

// The whole of what structured outputs take and leave out. The fake has written the rules down by itself.
func TestStructuredOutputsTakeTheirSubset(t *testing.T) {
	t.Parallel()
	req := conformance.Request()
	req.Schema = []byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["id","tags","who"],"properties":{
		"id":{"type":"string","pattern":"^[A-Z]+$","minLength":2,"maxLength":9,"description":"d"},
		"counted":{"type":"string","pattern":"^[A-Z]{3,900}$"},"few":{"type":"string","pattern":"^[A-Z]{3,12}[0-9]{2}$"},"ahead":{"type":"string","pattern":"^(?=x)"},
		"tags":{"type":"array","items":{"type":"string","format":"mine"},"minItems":3,"maxItems":5,"uniqueItems":true},
		"some":{"type":"array","items":{"type":"string","format":"uri"},"minItems":1},
		"who":{"oneOf":[{"$ref":"#/$defs/person"},{"type":"null"}]},
		"n":{"type":["integer","null"],"minimum":0,"exclusiveMaximum":10,"multipleOf":2,"default":4}},
		"$defs":{"person":{"type":"object","properties":{"name":{"const":"x"}}}}}`)
	out, body := sent(t, adapter(anthropic.StructuredNative), nil, req, anthropictest.Says(`{}`))
	require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
	const want = `{"type":"object","properties":{"id":{"type":"string","pattern":"^[A-Z]+$","description":"d"},` +
		`"counted":{"type":"string"},"few":{"type":"string","pattern":"^[A-Z]{3,12}[0-9]{2}$"},"ahead":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},` +
		`"some":{"type":"array","items":{"type":"string","format":"uri"},"minItems":1},` +
		`"who":{"anyOf":[{"$ref":"#/$defs/person"},{"type":"null"}]},"n":{"type":["integer","null"]}},` +
		`"$defs":{"person":{"type":"object","properties":{"name":{"type":"string","const":"x"}},"required":[],"additionalProperties":false}},` +
		`"required":["id","tags","who"],"additionalProperties":false}`
	require.Equal(t, want, gjson.GetBytes(body, "output_config.format.schema").Raw) //nolint:testifylint // to the byte
	require.Equal(t, "json_schema", gjson.GetBytes(body, "output_config.format.type").String())
	require.False(t, gjson.GetBytes(body, "tools").Exists())
}

func TestSchemaWithoutAFormFailsBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	const native, tool = anthropic.StructuredNative, anthropic.StructuredTool
	optional := `{"type":"object","properties":{`
	for i := range 25 {
		optional += `"p` + strconv.Itoa(i) + `":{"type":"string"},`
	}
	optional += `"q":{"type":"string"}},"required":["q"]}`
	for name, tc := range map[string]struct{ way, schema, want string }{
		"OpenMap":      {native, `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}}}`, `"#/properties/m/additionalProperties" allows properties without a name`},
		"Recursion":    {native, `{"type":"object","properties":{"m":{"type":"array","items":{"$ref":"#"}}}}`, `"#" leads back to itself`},
		"Optional":     {native, optional, `"#" has 25 optional properties, more than 24`},
		"ToolArray":    {tool, `{"type":"array","items":{}}`, `"#" must be of the type "object"`},
		"ToolNullable": {tool, `{"type":["object"]}`, `"#" must be of the type "object"`},
		"ToolChoice":   {tool, `{"type":"object","anyOf":[{"required":["a"]}]}`, `"#/anyOf" is not taken at the root`},
		"ToolProperty": {tool, `{"type":"object","properties":{"größe":{}}}`, `"#/properties" has the name "größe"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := conformance.Request()
			req.Schema = []byte(tc.schema)
			out, body := sent(t, adapter(tc.way), nil, req)
			require.Equal(t, providers.Failed, out.Kind)
			require.Equal(t, providers.CodeSchemaNotSupported, out.Failure.Code)
			require.Contains(t, out.Failure.Message, "cannot express the output schema: "+tc.want)
			require.False(t, out.Failure.Retryable)
			require.Nil(t, body)
		})
	}
}

// headers are all that a request carries, besides what net/http adds.
var headers = []string{
	"Accept", "Accept-Encoding", "Anthropic-Version", "Connection", "Content-Length", "Content-Type", "Traceparent", "User-Agent", "X-Api-Key",
	"X-Stainless-Arch", "X-Stainless-Lang", "X-Stainless-Os", "X-Stainless-Package-Version", "X-Stainless-Retry-Count", "X-Stainless-Runtime",
	"X-Stainless-Runtime-Version",
}

// Nothing of the environment, of profiles on disk or of a process's telemetry reaches a request, and no prompt reaches telemetry.
func TestEnvironmentIsNotRead(t *testing.T) { //nolint:paralleltest // sets the environment
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "configs"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "credentials"), 0o700))
	profile := `{"base_url":"http://127.0.0.1:9/env","authentication":{"type":"user_oauth"},"organization_id":"env-org","workspace_id":"env-workspace"}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "configs", "default.json"), []byte(profile), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "credentials", "default.json"), []byte(`{"access_token":"env-profile","type":"oauth_token"}`), 0o600))
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("env-identity"), 0o600))
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "env-key", "ANTHROPIC_AUTH_TOKEN": "env-token", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/env",
		"ANTHROPIC_CUSTOM_HEADERS": "X-Env: env-header", "ANTHROPIC_PROFILE": "default", "ANTHROPIC_CONFIG_DIR": dir,
		"ANTHROPIC_FEDERATION_RULE_ID": "fdrl_env", "ANTHROPIC_ORGANIZATION_ID": "env-org", "ANTHROPIC_IDENTITY_TOKEN_FILE": token,
		"ANTHROPIC_IDENTITY_TOKEN": "env-identity", "ANTHROPIC_SERVICE_ACCOUNT_ID": "svac_env", "ANTHROPIC_WORKSPACE_ID": "env-workspace",
		"ANTHROPIC_WEBHOOK_SIGNING_KEY": "env-webhook", "ANTHROPIC_OPEN_TELEMETRY": "true",
		"ANTHROPIC_OPEN_TELEMETRY_PROPAGATION": "true", "ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE": "content",
		"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9",
	} {
		t.Setenv(name, value)
	}
	spans := &spanCounter{}
	otel.SetTracerProvider(spans)
	otel.SetTextMapPropagator(propagator{})
	t.Cleanup(func() {
		otel.SetTracerProvider(noop.NewTracerProvider())
		otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator())
	})
	for _, way := range []string{anthropic.StructuredNative, anthropic.StructuredTool} {
		for _, key := range []string{conformance.Key, ""} {
			conformance.Bubble(t, adapter(way), func(c *providers.Config) { c.APIKey = key }, func(t *testing.T, b *conformance.Bundle) {
				out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
				require.Equal(t, key != "", out.Kind == providers.Completed, "%+v", out.Failure)
				require.Len(t, b.Server.Log(), 1)
				e := b.Server.Log()[0]
				for name, values := range e.Header {
					require.Contains(t, headers, name)
					for _, v := range values {
						require.NotContains(t, v, "env-", name)
					}
				}
				require.NotContains(t, string(e.Body), "env-")
				require.Equal(t, key, e.Header.Get("X-Api-Key"))
				require.Equal(t, "docket", e.Header.Get("User-Agent"))
				require.Equal(t, conformance.Request().Traceparent, e.Header.Get("Traceparent"))
			})
		}
	}
	require.Zero(t, spans.tracers)
}

// spanCounter counts who asks for a tracer.
type spanCounter struct {
	noop.TracerProvider

	tracers int
}

func (s *spanCounter) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	s.tracers++
	return s.TracerProvider.Tracer(name, opts...)
}

// propagator overwrites the trace context.
type propagator struct{ propagation.TraceContext }

func (propagator) Inject(_ context.Context, c propagation.TextMapCarrier) {
	c.Set("traceparent", "env-trace")
}

// Anthropic has no idempotency key, and a header that says otherwise would be a promise that nobody keeps.
func TestNoIdempotencyKeyIsSent(t *testing.T) {
	t.Parallel()
	conformance.Bubble(t, adapter(""), nil, func(t *testing.T, b *conformance.Bundle) {
		b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
		e := b.Server.Log()[0]
		require.NotContains(t, e.Header, "Idempotency-Key")
		require.NotContains(t, e.Header, "X-Client-Request-Id")
		require.Equal(t, "req_fake_1", b.Recorder.Ack.ProviderRequestID)
	})
}

// The provider's own name for a request goes before the one of a box in the middle.
func TestRequestIDIsAnthropics(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusTooManyRequests} {
		conformance.Bubble(t, adapter(""), nil, func(t *testing.T, b *conformance.Bundle) {
			b.Server.Enqueue(providertest.Status(status, "application/json", anthropictest.ErrorBody("rate_limit_error", "x"), "X-Request-Id", "of-a-box"))
			out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
			require.Equal(t, "req_fake_1", out.ProviderRequestID)
		})
	}
}

func TestRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	const url = "https://example.com"
	for want, cfg := range map[string]providers.Config{
		"base_url: is required for the kind anthropic":                                            {},
		"api: the kind anthropic has one only, so leave it out":                                   {BaseURL: url, API: "chat"},
		"background: the kind anthropic does not know it":                                         {BaseURL: url, Background: true},
		"strict_schema: the kind anthropic has structured_output at each model instead":           {BaseURL: url, StrictSchema: true},
		"idempotent: Anthropic knows no idempotency key: a request that is sent again runs again": {BaseURL: url, Idempotent: true},
		"models[1].structured_output: must be native or tool":                                     {BaseURL: url, Models: []providers.Model{{Name: "a"}, {Name: "b", StructuredOutput: "prompt"}}},
	} {
		_, err := anthropic.New(cfg)
		require.EqualError(t, err, want)
	}
}

// The address may end with /v1 or not.
func TestBaseURL(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"", "/", "/v1", "/v1/"} {
		server, url := providertest.StartOf(t, anthropictest.Messages())
		cfg := adapter("").Config.WithDefaults()
		cfg.BaseURL, cfg.APIKey = url[:len(url)-len("/v1")]+"/gateway"+end, "k"
		p, err := anthropic.NewWithOptions(cfg, exchange.Options{})
		require.NoError(t, err)
		defer p.Close()
		out := p.Send(t.Context(), conformance.Request(), &conformance.Recorder{})
		require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
		require.Equal(t, "/gateway/v1/messages", server.Log()[0].Path)
	}
}
