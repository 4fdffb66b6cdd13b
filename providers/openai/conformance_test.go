package openai_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/openai"
	"github.com/docket-gateway/docket/providers/openai/openaitest"
	"github.com/docket-gateway/docket/providers/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newProvider(cfg providers.Config, opts exchange.Options) (providers.Provider, error) {
	return openai.NewWithOptions(cfg, opts)
}

func responsesAdapter() conformance.Adapter {
	return conformance.Adapter{
		Config:   providers.Config{Kind: openai.Kind, StrictSchema: true},
		New:      newProvider,
		Identity: []string{"X-Client-Request-Id", "Idempotency-Key"}, KeyIn: "Authorization",
		Fake: conformance.Fake{
			Protocol: openaitest.Responses(),
			Says:     openaitest.ResponsesSays, Starts: openaitest.ResponsesStarts(), Cut: openaitest.ResponsesCut(), Damaged: openaitest.ResponsesDamaged(),
			Refuses: openaitest.ResponsesRefuses(), Filters: openaitest.ResponsesIncomplete("content_filter"),
			AtLimit: openaitest.ResponsesIncomplete("max_output_tokens"), CallsTool: openaitest.ResponsesTool(),
			Error:     openaitest.Error,
			RateLimit: conformance.Code{Status: 429, Code: "rate_limit_exceeded"}, Quota: conformance.Code{Status: 429, Code: "insufficient_quota"},
			Overload: conformance.Code{Status: 503, Code: "server_error"}, Internal: conformance.Code{Status: 500, Code: "server_error"},
			OverloadInStream: openaitest.ResponsesErrorEvent("server_is_overloaded"), InternalInStream: openaitest.ResponsesFails("server_error"),
		},
	}
}

func chatAdapter() conformance.Adapter {
	a := responsesAdapter()
	a.Config.API = openai.APIChat
	says := func(output string) providertest.Behaviour { return openaitest.ChatSays(output, "stop") }
	a.Fake = conformance.Fake{
		Protocol: openaitest.Chat(),
		Says:     says, Starts: openaitest.ChatStarts(), Cut: openaitest.ChatCut(), Damaged: openaitest.ChatDamaged(),
		Refuses: openaitest.ChatRefuses(), Filters: openaitest.ChatSays("{", "content_filter"), AtLimit: openaitest.ChatSays("{", "length"),
		CallsTool: openaitest.ChatTool(), Error: openaitest.Error,
		RateLimit: a.Fake.RateLimit, Quota: a.Fake.Quota, Overload: a.Fake.Overload, Internal: a.Fake.Internal,
		OverloadInStream: openaitest.ChatErrorEvent("server_is_overloaded"), InternalInStream: openaitest.ChatErrorEvent("server_error"),
	}
	return a
}

func TestConformsByResponses(t *testing.T) {
	t.Parallel()
	conformance.Run(t, responsesAdapter())
}

func TestConformsByChatCompletions(t *testing.T) {
	t.Parallel()
	conformance.Run(t, chatAdapter())
}
