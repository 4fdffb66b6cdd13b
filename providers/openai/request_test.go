package openai_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/openai"
	"github.com/docket-gateway/docket/providers/openai/openaitest"
	"github.com/docket-gateway/docket/providers/providertest"
)

// both runs f with both APIs; say is the fake's answer in each.
func both(t *testing.T, f func(t *testing.T, a conformance.Adapter)) {
	t.Run("Responses", func(t *testing.T) { t.Parallel(); f(t, responsesAdapter()) })
	t.Run("Chat", func(t *testing.T) { t.Parallel(); f(t, chatAdapter()) })
}

const withOptional = `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"number"}}}`

// An optional property is asked for as "or null", and a null that comes is left out again.
func TestOptionalPropertiesThereAndBack(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, a conformance.Adapter) {
		conformance.Bubble(t, a, nil, func(t *testing.T, b *conformance.Bundle) {
			b.Server.Enqueue(a.Fake.Says(`{"a": "\u00e9", "b" : null }`), a.Fake.Says(`{"a":"x","b":1.50}`))
			req := conformance.Request()
			req.Schema = []byte(withOptional)
			out := b.Sender.Send(t.Context(), req, b.Recorder)
			require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
			require.Equal(t, `{"a": "\u00e9" }`, string(out.Output)) //nolint:testifylint // to the byte
			out = b.Sender.Send(t.Context(), req, &conformance.Recorder{})
			require.Equal(t, `{"a":"x","b":1.50}`, string(out.Output)) //nolint:testifylint // to the byte
		})
	})
}

func TestSchemaWithoutAFormFailsBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, a conformance.Adapter) {
		conformance.Bubble(t, a, nil, func(t *testing.T, b *conformance.Bundle) {
			req := conformance.Request()
			req.Schema = []byte(`{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}}}`)
			out := b.Sender.Send(t.Context(), req, b.Recorder)
			require.Equal(t, providers.Failed, out.Kind)
			require.Equal(t, providers.Failure{Code: providers.CodeSchemaNotSupported,
				Message: `OpenAI's strict mode cannot express the output schema: "#/properties/m/additionalProperties" allows properties without a name of their own, which has no form`}, *out.Failure)
			require.Empty(t, b.Server.Log())
			require.Empty(t, b.Recorder.Said)
		})
	})
}

// Without strict mode the schema goes along as it is, to the byte and in its order.
func TestSchemaAsAHint(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, a conformance.Adapter) {
		conformance.Bubble(t, a, func(c *providers.Config) { c.StrictSchema = false }, func(t *testing.T, b *conformance.Bundle) {
			b.Server.Enqueue(a.Fake.Says(`{"m":null}`))
			req := conformance.Request()
			req.Schema = []byte(`{"type":"object","properties":{"z":{"minimum":12345678901234567890.10},"m":{"type":"object","additionalProperties":{"type":"string"}}}}`)
			out := b.Sender.Send(t.Context(), req, b.Recorder)
			require.Equal(t, `{"m":null}`, string(out.Output), "%+v", out.Failure)
			body := b.Server.Log()[0].Body
			format := gjson.GetBytes(body, "text.format")
			if !format.Exists() {
				format = gjson.GetBytes(body, "response_format.json_schema")
			}
			require.Equal(t, string(req.Schema), format.Get("schema").Raw)
			require.False(t, format.Get("strict").Bool())
		})
	})
}

// The fake refuses, as OpenAI does, a temperature for a reasoning model.
func TestReasoningModels(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, a conformance.Adapter) {
		for reasoning, want := range map[bool]providers.OutcomeKind{true: providers.Completed, false: providers.Failed} {
			conformance.Bubble(t, a, func(c *providers.Config) {
				c.Models = append(c.Models, providers.Model{Name: "reasoning-1", Reasoning: reasoning})
			}, func(t *testing.T, b *conformance.Bundle) {
				req := conformance.Request()
				req.Model = "reasoning-1"
				out := b.Sender.Send(t.Context(), req, b.Recorder)
				require.Equal(t, want, out.Kind, "%+v", out.Failure)
			})
		}
	})
}

// Nothing of the environment reaches a request.
func TestEnvironmentIsNotRead(t *testing.T) { //nolint:paralleltest // sets the environment
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "env-key", "OPENAI_ADMIN_KEY": "env-admin", "OPENAI_BASE_URL": "http://127.0.0.1:9/env", "OPENAI_ORG_ID": "env-org",
		"OPENAI_PROJECT_ID": "env-project", "OPENAI_CUSTOM_HEADERS": "X-Env: env-header", "OPENAI_LOG": "debug",
	} {
		t.Setenv(name, value)
	}
	for _, a := range []conformance.Adapter{responsesAdapter(), chatAdapter()} {
		for _, key := range []string{conformance.Key, ""} {
			conformance.Bubble(t, a, func(c *providers.Config) { c.APIKey = key }, func(t *testing.T, b *conformance.Bundle) {
				b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
				require.Len(t, b.Server.Log(), 1)
				e := b.Server.Log()[0]
				for name, values := range e.Header {
					for _, v := range values {
						require.NotContains(t, v, "env-", name)
					}
				}
				require.NotContains(t, e.Header, "X-Env")
				require.NotContains(t, e.Header, "Openai-Organization")
				require.NotContains(t, e.Header, "Openai-Project")
				require.NotContains(t, string(e.Body), "env-")
				require.Equal(t, key != "", e.Header.Get("Authorization") != "")
			})
		}
	}
}

func TestRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]providers.Config{
		"base_url: is required for the kind openai": {},
		"api: must be responses or chat":            {BaseURL: "https://example.com", API: "realtime"},
		"background: needs the API responses":       {BaseURL: "https://example.com", API: openai.APIChat, Background: true},
	} {
		_, err := openai.New(cfg)
		require.EqualError(t, err, want)
	}
}

// A server that answers in one piece is understood too.
func TestWholeResponse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body string
		kind providers.OutcomeKind
		code string
	}{
		"Completed": {`{"object":"response","id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"{}"}]}]}`, providers.Completed, ""},
		"Comments": {`{"object":"response","id":"r","status":"completed","output":[{"type":"reasoning"},{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"hm"}]},
			{"type":"message","phase":"final_answer","content":[{"type":"output_text","text":"{"},{"type":"output_text","text":"}"}]}]}`, providers.Completed, ""},
		"InProgress":    {`{"object":"response","id":"r","status":"in_progress"}`, providers.Unknown, providers.CodeTruncatedStream},
		"Cancelled":     {`{"object":"response","id":"r","status":"cancelled"}`, providers.Failed, providers.CodeCancelled},
		"NumberAsText":  {`{"object":"response","id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":5}]}]}`, providers.Failed, providers.CodeMalformedAnswer},
		"OtherPart":     {`{"object":"response","id":"r","status":"completed","output":[{"type":"message","content":[{"type":"song","text":"la"}]}]}`, providers.Failed, providers.CodeMalformedAnswer},
		"LoneSurrogate": {`{"object":"response","id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"\ud83d"}]}]}`, providers.Failed, providers.CodeMalformedAnswer},
		"Cut":           {`{"object":"response","id":"r","status":"comp`, providers.Unknown, providers.CodeTruncatedStream},
		"OtherReason":   {`{"object":"response","id":"r","status":"incomplete","incomplete_details":{"reason":"steered"}}`, providers.Failed, providers.CodeProviderError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Bubble(t, responsesAdapter(), nil, func(t *testing.T, b *conformance.Bundle) {
				b.Server.Enqueue(providertest.Status(200, "application/json", tc.body))
				out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
				require.Equal(t, tc.kind, out.Kind, "%+v", out.Failure)
				if tc.kind == providers.Completed {
					require.Equal(t, "{}", string(out.Output))
				} else {
					require.Equal(t, tc.code, out.Failure.Code)
				}
			})
		})
	}
}

// The last event decides, and only if it has one.
func TestLastEvents(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		behave providertest.Behaviour
		code   string
		kind   providers.OutcomeKind
	}{
		"FailedByRateLimit": {openaitest.ResponsesFails("rate_limit_exceeded"), providers.CodeRateLimited, providers.Failed},
		"FailedByPrompt":    {openaitest.ResponsesFails("invalid_prompt"), providers.CodeProviderError, providers.Failed},
		"FailedByQuota":     {openaitest.ResponsesErrorEvent("insufficient_quota"), providers.CodeQuotaExceeded, providers.Failed},
		"WithoutResponse":   {providertest.Events(`{"type":"response.completed","sequence_number":1}`), providers.CodeMalformedAnswer, providers.Failed},
		"NotOver":           {providertest.Events(`{"type":"response.completed","response":{"object":"response","id":"r","status":"queued"}}`), providers.CodeMalformedAnswer, providers.Failed},
		"ErrorObject":       {providertest.Events(openaitest.ErrorBody("server_error")), providers.CodeProviderError, providers.Failed},
		"EmptyError":        {providertest.Events(`{"type":"error"}`), providers.CodeMalformedAnswer, providers.Failed},
		"DamagedAndCut":     {providertest.Events(`{"type":"resp`), providers.CodeTruncatedStream, providers.Unknown},
		"DoneAlone":         {providertest.Events("[DONE]"), providers.CodeTruncatedStream, providers.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Bubble(t, responsesAdapter(), nil, func(t *testing.T, b *conformance.Bundle) {
				b.Server.Enqueue(tc.behave)
				out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
				require.Equal(t, tc.kind, out.Kind, "%+v", out.Failure)
				require.Equal(t, tc.code, out.Failure.Code)
			})
		})
	}
}

// With connections that are used again and an idempotency key, net/http would send a request again by itself.
func TestNothingIsSentAgainOnABrokenConnection(t *testing.T) {
	t.Parallel()
	server, url := providertest.StartOf(t, openaitest.Responses())
	const whole = `{"object":"response","id":"r","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"{}"}]}]}`
	server.Enqueue(providertest.Status(200, "application/json", whole), conformance.BreaksReused)
	cfg := responsesAdapter().Config.WithDefaults()
	cfg.BaseURL, cfg.APIKey, cfg.Models = url, "k", []providers.Model{{Name: conformance.Model}}
	p, err := openai.NewWithOptions(cfg, exchange.Options{ReuseConnections: true})
	require.NoError(t, err)
	defer p.Close()
	conformance.NothingIsSentAgain(t, p, server)
}
