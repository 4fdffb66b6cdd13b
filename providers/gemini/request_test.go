package gemini_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/gemini"
	"github.com/docket-gateway/docket/providers/gemini/geminitest"
	"github.com/docket-gateway/docket/providers/providertest"
)

// Nothing of the environment reaches a request, and without a key nothing is sent.
func TestEnvironmentIsNotRead(t *testing.T) { //nolint:paralleltest // sets the environment
	for name, value := range map[string]string{
		"GOOGLE_API_KEY": "env-key", "GEMINI_API_KEY": "env-key-2", "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9/env",
		"GOOGLE_VERTEX_BASE_URL": "http://127.0.0.1:9/env", "GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_GENAI_USE_ENTERPRISE": "true",
		"GOOGLE_CLOUD_PROJECT": "env-project", "GOOGLE_CLOUD_LOCATION": "env-location", "GOOGLE_CLOUD_REGION": "env-region",
		"GOOGLE_APPLICATION_CREDENTIALS": "/env-credentials", "GOOGLE_CLOUD_QUOTA_PROJECT": "env-quota",
		"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9",
	} {
		t.Setenv(name, value)
	}
	for _, key := range []string{conformance.Key, ""} {
		conformance.Bubble(t, adapter(), func(c *providers.Config) { c.APIKey = key }, func(t *testing.T, b *conformance.Bundle) {
			out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
			if key == "" {
				require.Equal(t, providers.CodeUnauthorized, out.Failure.Code)
				require.Empty(t, b.Server.Log())
				require.Empty(t, b.Recorder.Said)
				return
			}
			require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
			require.Len(t, b.Server.Log(), 1)
			e := b.Server.Log()[0]
			require.Equal(t, "/v1/models/"+conformance.Model+":streamGenerateContent", e.Path)
			require.NotContains(t, e.Header, "X-Goog-User-Project")
			require.NotContains(t, e.Header, "Authorization")
			for name, values := range e.Header {
				require.NotContains(t, strings.Join(values, " "), "env-", name)
			}
			require.NotContains(t, string(e.Body), "env-")
		})
	}
}

// Of Google's headers only those go along that say which program asks. A deadline of our own is not told: Google would give up
// then, and the answer could not come late.
func TestHeaders(t *testing.T) {
	t.Parallel()
	conformance.Bubble(t, adapter(), nil, func(t *testing.T, b *conformance.Bundle) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		out := b.Sender.Send(ctx, conformance.Request(), b.Recorder)
		require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
		var names []string
		for name := range b.Server.Log()[0].Header {
			names = append(names, name)
		}
		require.ElementsMatch(t, []string{"Connection", "Content-Length", "Content-Type", "Traceparent", "User-Agent", "X-Goog-Api-Client", "X-Goog-Api-Key"}, names)
		require.Equal(t, "docket", b.Server.Log()[0].Header.Get("User-Agent"))
	})
}

func TestBaseURLWithAndWithoutVersion(t *testing.T) {
	t.Parallel()
	for suffix, want := range map[string]string{
		"": "/v1beta/", "/": "/v1beta/", "/v1": "/v1/", "/v1beta/": "/v1beta/", "/v1alpha": "/v1alpha/",
		"/proxy/gemini": "/proxy/gemini/v1beta/", "/proxy/v1": "/proxy/v1/", "/v1/proxy": "/v1/proxy/v1beta/",
	} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			conformance.Bubble(t, adapter(), func(c *providers.Config) {
				c.BaseURL = strings.TrimSuffix(c.BaseURL, "/v1") + suffix
				c.Models = append(c.Models, providers.Model{Name: "tunedModels/mine"}, providers.Model{Name: "models/theirs"})
			}, func(t *testing.T, b *conformance.Bundle) {
				for model, path := range map[string]string{conformance.Model: "models/" + conformance.Model, "tunedModels/mine": "tunedModels/mine", "models/theirs": "models/theirs"} {
					req := conformance.Request()
					req.Model = model
					out := b.Sender.Send(t.Context(), req, &conformance.Recorder{})
					require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
					log := b.Server.Log()
					require.Equal(t, want+path+":streamGenerateContent", log[len(log)-1].Path)
				}
			})
		})
	}
}

func TestRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]providers.Config{
		"base_url: is required for the kind gemini":                             {APIKey: "k"},
		"idempotent: must be false: the Gemini API has no idempotency keys":     {BaseURL: "https://example.com", APIKey: "k", Idempotent: true},
		"api: must be empty: the kind gemini speaks one API":                    {BaseURL: "https://example.com", APIKey: "k", API: "chat"},
		"background: must be false: the kind gemini has no background requests": {BaseURL: "https://example.com", APIKey: "k", Background: true},
	} {
		_, err := gemini.New(cfg)
		require.EqualError(t, err, want)
	}
	for _, name := range []string{"a?key=x", "a&b", "../files", "a/../b", "a:generateContent", "a#b", "a%2fb", "/a"} {
		_, err := gemini.New(providers.Config{BaseURL: "https://example.com", APIKey: "k", Models: []providers.Model{{Name: "fine"}, {Name: name}}})
		require.ErrorContains(t, err, "models[1].name: must be letters", name)
	}
}

func TestSchemaWithoutAFormFailsBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	for schema, problem := range map[string]string{
		`{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}}}`: `"#/properties/m/additionalProperties" allows properties without a name of their own, which has no form`,
		`{"type":"object","properties":{"m":{"not":{"type":"null"}}}}`:                                    `"#/properties/m/not" has no form`,
		`{"type":"object","required":["next"],"properties":{"next":{"$ref":"#"}}}`:                        `"#" contains itself by way of required properties alone`,
		`{"type":"object","properties":{"m":{"type":"array","items":{"type":"null"},"prefixItems":[]}}}`:  `"#/properties/m/prefixItems" has no form`,
	} {
		conformance.Bubble(t, adapter(), nil, func(t *testing.T, b *conformance.Bundle) {
			req := conformance.Request()
			req.Schema = []byte(schema)
			out := b.Sender.Send(t.Context(), req, b.Recorder)
			require.Equal(t, providers.Failed, out.Kind)
			require.Equal(t, providers.Failure{Code: providers.CodeSchemaNotSupported,
				Message: `Gemini's responseJsonSchema cannot express the output schema: ` + problem}, *out.Failure)
			require.Empty(t, b.Server.Log())
			require.Empty(t, b.Recorder.Said)
		})
	}
}

// What only narrows an answer is left out, keys keep their order and numbers their digits, and the fake, which checks the documented
// subset by itself, takes the form.
func TestWeakerForm(t *testing.T) {
	t.Parallel()
	const schema = `{"$schema":"x","type":"object","required":["z","a"],"properties":{
		"z":{"type":"string","minLength":1,"pattern":"^<","format":"email","description":"<z>"},
		"a":{"type":"number","minimum":12345678901234567890.10,"multipleOf":2},
		"k":{"const":"x"},"b":{"const":true},"n":{"enum":["x",null]},
		"t":{"type":"string","format":"date"},
		"next":{"oneOf":[{"$ref":"#/$defs/d"},{"type":"null"}]}},
		"$defs":{"d":{"type":"object","properties":{"next":{"$ref":"#"}}}}}`
	const form = `{"type":"object","properties":{` +
		`"z":{"type":"string","description":"<z>"},` +
		`"a":{"type":"number","minimum":12345678901234567890.10},` +
		`"k":{"type":"string","enum":["x"]},"b":{"type":"boolean"},"n":{"type":["string","null"]},` +
		`"t":{"type":"string","format":"date"},` +
		`"next":{"anyOf":[{"$ref":"#/$defs/d"},{"type":"null"}]}},` +
		`"$defs":{"d":{"type":"object","properties":{"next":{"$ref":"#"}},"required":[],"additionalProperties":false}},` +
		`"required":["z","a"],"additionalProperties":false}`
	conformance.Bubble(t, adapter(), nil, func(t *testing.T, b *conformance.Bundle) {
		b.Server.Enqueue(geminitest.Says(`{"z":null}`))
		req := conformance.Request()
		req.Schema = []byte(schema)
		out := b.Sender.Send(t.Context(), req, b.Recorder)
		require.Equal(t, `{"z":null}`, string(out.Output), "%+v", out.Failure) // whether it is valid is not the adapter's to say
		sent := gjson.GetBytes(b.Server.Log()[0].Body, "generationConfig.responseJsonSchema").Raw
		require.Equal(t, form, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(sent)) //nolint:testifylint // to the byte
	})
}

func TestWithoutSchemaSystemAndLimit(t *testing.T) {
	t.Parallel()
	conformance.Bubble(t, adapter(), func(c *providers.Config) { c.Models[0].Reasoning = true }, func(t *testing.T, b *conformance.Bundle) {
		b.Server.Enqueue(geminitest.Says("x"))
		out := b.Sender.Send(t.Context(), providers.Request{Model: conformance.Model, Prompt: "hi <b>&\u2028"}, b.Recorder)
		require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
		e := b.Server.Log()[0]
		require.JSONEq(t, `{"contents":[{"parts":[{"text":"hi <b>&\u2028"}],"role":"user"}],"generationConfig":{}}`, string(e.Body))
		require.Empty(t, e.Header.Values("Traceparent"))
	})
}

// With connections that are used again net/http could send a request again by itself.
func TestNothingIsSentAgainOnABrokenConnection(t *testing.T) {
	t.Parallel()
	server, url := providertest.StartOf(t, geminitest.Stream())
	server.Enqueue(geminitest.Says("{}"), conformance.BreaksReused)
	cfg := adapter().Config.WithDefaults()
	cfg.BaseURL, cfg.APIKey, cfg.Models = url, "k", []providers.Model{{Name: conformance.Model}}
	p, err := gemini.NewWithOptions(cfg, exchange.Options{ReuseConnections: true})
	require.NoError(t, err)
	defer p.Close()
	conformance.NothingIsSentAgain(t, p, server)
}

// The SDK's client can only send with what a request brings along.
func TestOneProviderServesManyAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	server, url := providertest.StartOf(t, geminitest.Stream())
	cfg := adapter().Config.WithDefaults()
	cfg.BaseURL, cfg.APIKey, cfg.Models = url, "k", []providers.Model{{Name: conformance.Model}}
	p, err := gemini.New(cfg)
	require.NoError(t, err)
	done := make(chan providers.Outcome)
	const n = 8
	for range n {
		go func() { done <- p.Send(t.Context(), conformance.Request(), &conformance.Recorder{}) }()
	}
	ids := map[string]bool{}
	for range n {
		out := <-done
		require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
		ids[out.ProviderRequestID] = true
	}
	require.Len(t, ids, n, "each has its own answer's id")
	require.Len(t, server.Log(), n)
	for _, e := range server.Log() {
		require.Equal(t, http.MethodPost, e.Method)
	}
}
