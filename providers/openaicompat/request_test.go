package openaicompat_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/openaicompat"
)

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	_, _ = b.send(t.Context(), "meta/llama")
	e := b.server.Log()[0]
	require.Equal(t, "att_1", e.Key)
	require.Equal(t, "att_1", e.ClientRequestID)
	require.Equal(t, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", e.Traceparent)
	require.JSONEq(t, `{
		"model": "meta/llama", "stream": true, "stream_options": {"include_usage": true},
		"messages": [{"role": "system", "content": "Sort."}, {"role": "user", "content": "A refund, please: prüfen 🖨️"}],
		"temperature": 0.1, "max_tokens": 1000,
		"response_format": {"type": "json_schema", "json_schema": {"name": "triage", "schema": `+schema+`}}
	}`, string(e.Body))
}

func TestRequestVariants(t *testing.T) {
	t.Parallel()
	body := func(t *testing.T, req providers.Request, change func(*providers.Config)) map[string]any {
		t.Helper()
		b := setup(t, change)
		b.sender.Send(t.Context(), req, &recorder{})
		var m map[string]any
		require.NoError(t, json.Unmarshal(b.server.Log()[0].Body, &m))
		return m
	}
	t.Run("StrictOnlyIfAskedFor", func(t *testing.T) {
		t.Parallel()
		m := body(t, request("m"), func(c *providers.Config) { c.StrictSchema = true })
		require.Equal(t, true, m["response_format"].(map[string]any)["json_schema"].(map[string]any)["strict"])
	})
	t.Run("ReasoningModelsGetNoTemperature", func(t *testing.T) {
		t.Parallel()
		models := func(c *providers.Config) {
			c.Models = []providers.Model{{Name: "qwen3", Reasoning: true}, {Name: "llama"}}
		}
		m := body(t, request("qwen3"), models)
		require.NotContains(t, m, "temperature")
		require.EqualValues(t, 1000, m["max_tokens"])
		require.Contains(t, body(t, request("llama"), models), "temperature")
	})
	t.Run("TheFieldOfTheTokenLimit", func(t *testing.T) {
		t.Parallel()
		for _, tc := range []struct{ model, set, want, not string }{
			{"llama", "", "max_tokens", "max_completion_tokens"},
			{"openai/o1", "", "max_completion_tokens", "max_tokens"},
			{"llama", "max_completion_tokens", "max_completion_tokens", "max_tokens"},
			{"gpt-5", "max_tokens", "max_tokens", "max_completion_tokens"},
		} {
			m := body(t, request(tc.model), func(c *providers.Config) { c.MaxTokensField = tc.set })
			require.EqualValues(t, 1000, m[tc.want], "%+v", tc)
			require.NotContains(t, m, tc.not, "%+v", tc)
		}
	})
	t.Run("TheResponseFormat", func(t *testing.T) {
		t.Parallel()
		for set, want := range map[string]any{"": "json_schema", "json_schema": "json_schema", "json_object": "json_object", "none": nil} {
			m := body(t, request("m"), func(c *providers.Config) { c.ResponseFormat = set })
			format, _ := m["response_format"].(map[string]any)
			require.Equal(t, want, format["type"], set)
			if want != "json_schema" {
				require.LessOrEqual(t, len(format), 1, set)
			}
		}
	})
	t.Run("NoUsageInStreamsIfItIsToldSo", func(t *testing.T) {
		t.Parallel()
		m := body(t, request("m"), func(c *providers.Config) { c.OmitStreamUsage = true })
		require.NotContains(t, m, "stream_options")
		require.Equal(t, true, m["stream"])
	})
	t.Run("ZeroTemperatureIsSent", func(t *testing.T) {
		t.Parallel()
		req := request("m")
		req.Temperature = 0
		require.EqualValues(t, 0, body(t, req, nil)["temperature"])
	})
	t.Run("SchemaKeepsItsNumbersAndKeywords", func(t *testing.T) {
		t.Parallel()
		b := setup(t, nil)
		req := request("m")
		req.Schema = json.RawMessage(`{"const":9007199254740993,"x-odd":{"$ref":"#"}}`)
		b.sender.Send(t.Context(), req, &recorder{})
		require.Contains(t, string(b.server.Log()[0].Body), `"schema":{"const":9007199254740993,"x-odd":{"$ref":"#"}}`)
	})
	t.Run("TaskNamesBecomeFormatNames", func(t *testing.T) {
		t.Parallel()
		req := request("m")
		req.Task = "größe v1.2"
		m := body(t, req, nil)
		require.Equal(t, "gr_e_v1_2", m["response_format"].(map[string]any)["json_schema"].(map[string]any)["name"])
	})
}

func TestNamesOfReasoningModels(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"o3-mini", "openai/o1", "gpt-5", "gpt-5.1-mini"} {
		require.True(t, openaicompat.NamesReasoning(model), model)
	}
	for _, model := range []string{"gpt-4o", "gpt-5-chat-latest", "o3000", "phi-o3"} {
		require.False(t, openaicompat.NamesReasoning(model), model)
	}
}

func TestBrokenSchemaIsNotSent(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	req := request("m")
	req.Schema = json.RawMessage(`{"type":`)
	out := b.sender.Send(t.Context(), req, &recorder{})
	require.Equal(t, failed, out.Kind)
	require.Equal(t, providers.CodeNotSent, out.Failure.Code)
	require.Empty(t, b.server.Log())
}

func TestNewNeedsABaseURL(t *testing.T) {
	t.Parallel()
	_, err := providers.NewRegistry([]providers.Config{{Name: "a", Kind: openaicompat.Kind, Models: []providers.Model{{Name: "m"}}}},
		map[string]providers.Factory{openaicompat.Kind: openaicompat.New})
	require.EqualError(t, err, "providers[0].base_url: is required for the kind openai-compatible")
}

func TestFakeAnswersTheShippedTasks(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	req := request("ok")
	req.Schema = triageSchema(t)
	out := b.sender.Send(t.Context(), req, &recorder{})
	require.Equal(t, completed, out.Kind)
	require.JSONEq(t, `{"category":"billing","priority":"normal","summary":"A refund, please: prüfen 🖨️"}`, string(out.Output))
}

func TestAPIKeyIsSentAndNothingIfThereIsNone(t *testing.T) {
	t.Parallel()
	got := make(chan []string, 2)
	for _, key := range []string{"sk-secret", ""} {
		url := serve(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Values("Authorization") })
		sender(t, config(url, func(c *providers.Config) { c.APIKey = key }), noOptions).Send(t.Context(), request("m"), &recorder{})
	}
	require.Equal(t, []string{"Bearer sk-secret"}, <-got)
	require.Empty(t, <-got)
}
