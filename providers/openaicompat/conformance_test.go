package openaicompat_test

import (
	"testing"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/openaicompat"
	fake "github.com/docket-gateway/docket/providers/providertest"
)

func TestConforms(t *testing.T) {
	t.Parallel()
	conformance.Run(t, adapter())
}

func adapter() conformance.Adapter {
	return conformance.Adapter{
		Config: providers.Config{Kind: openaicompat.Kind},
		New: func(cfg providers.Config, opts exchange.Options) (providers.Provider, error) {
			return openaicompat.NewWithOptions(cfg, opts)
		},
		Identity: []string{"X-Client-Request-Id", "Idempotency-Key"}, KeyIn: "Authorization",
		Fake: conformance.Fake{
			Protocol: fake.ChatCompletions(),
			Says:     func(output string) fake.Behaviour { return fake.Says(output, "stop") },
			Starts:   fake.AckThenSilent(), Cut: fake.CutAfter(2), Damaged: fake.DamagedEvent(),
			Refuses: func(x *fake.Exchange) {
				x.Headers()
				x.Data(`{"choices":[{"index":0,"delta":{"refusal":"I cannot"},"finish_reason":null}]}`)
				x.Finish("stop", 1)
			},
			Filters: fake.Says("{", "content_filter"), AtLimit: fake.Says("{", "length"),
			CallsTool: fake.Events(`{"choices":[{"delta":{"tool_calls":[{"index":0}]},"finish_reason":"tool_calls"}]}`, "[DONE]"),
			Error:     fake.Error,
			RateLimit: conformance.Code{Status: 429, Code: "rate_limit_exceeded"}, Quota: conformance.Code{Status: 429, Code: "insufficient_quota"},
			Overload: conformance.Code{Status: 503, Code: "overloaded"}, Internal: conformance.Code{Status: 500, Code: "server_error"},
			OverloadInStream: fake.ErrorEvent("overloaded_error"), InternalInStream: fake.ErrorEvent("server_error"),
		},
	}
}
