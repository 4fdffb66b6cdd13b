package anthropic_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/anthropic"
	"github.com/docket-gateway/docket/providers/anthropic/anthropictest"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// adapter asks for the schema in the given way.
func adapter(structured string) conformance.Adapter {
	a := conformance.Adapter{
		Config: providers.Config{Kind: anthropic.Kind},
		New: func(cfg providers.Config, opts exchange.Options) (providers.Provider, error) {
			for i := range cfg.Models {
				cfg.Models[i].StructuredOutput = structured
			}
			return anthropic.NewWithOptions(cfg, opts)
		},
		KeyIn: "X-Api-Key", // and no identity: Anthropic has no idempotency key and no client request id
		Fake: conformance.Fake{
			Protocol: anthropictest.Messages(),
			Says:     anthropictest.Says, Starts: anthropictest.Starts(), Cut: anthropictest.Cut(), Damaged: anthropictest.Damaged(),
			Refuses: anthropictest.Refuses(), Filters: anthropictest.Filters(), FiltersByError: true,
			AtLimit: anthropictest.Ends("{", "max_tokens"), CallsTool: anthropictest.CallsTool(),
			Error:     anthropictest.Error,
			RateLimit: conformance.Code{Status: 429, Code: "rate_limit_error"}, Quota: conformance.Code{Status: 402, Code: "billing_error"},
			Overload: conformance.Code{Status: 529, Code: "overloaded_error"}, Internal: conformance.Code{Status: 500, Code: "api_error"},
			OverloadInStream: anthropictest.ErrorEvent("overloaded_error", "Overloaded"),
			InternalInStream: anthropictest.ErrorEvent("api_error", "Internal server error"),
		},
	}
	return a
}

func TestConformsByStructuredOutputs(t *testing.T) {
	t.Parallel()
	conformance.Run(t, adapter(anthropic.StructuredNative))
}

func TestConformsByAForcedTool(t *testing.T) {
	t.Parallel()
	conformance.Run(t, adapter(anthropic.StructuredTool))
}
