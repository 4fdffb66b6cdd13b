package gemini_test

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/gemini"
	"github.com/docket-gateway/docket/providers/gemini/geminitest"
	"github.com/docket-gateway/docket/providers/providertest"
)

// perDay names a quota for a day in the fake's errors.
const perDay = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func adapter() conformance.Adapter {
	return conformance.Adapter{
		Config: providers.Config{Kind: gemini.Kind},
		New: func(cfg providers.Config, opts exchange.Options) (providers.Provider, error) {
			return gemini.NewWithOptions(cfg, opts)
		},
		KeyIn: "X-Goog-Api-Key",
		Fake: conformance.Fake{
			Protocol: geminitest.Stream(),
			Says:     geminitest.Says, Starts: geminitest.Starts(), Cut: geminitest.Cut(), Damaged: geminitest.Damaged(),
			Refuses: geminitest.Thinks(), Filters: geminitest.FinishesAlone("SAFETY"), AtLimit: geminitest.Finishes("{", "MAX_TOKENS"),
			CallsTool: geminitest.Tool(),
			Error: func(status int, code string, headers ...string) providertest.Behaviour {
				if code == perDay {
					return geminitest.Quota(perDay, "36s")
				}
				return geminitest.Error(status, code, headers...)
			},
			RateLimit:        conformance.Code{Status: http.StatusTooManyRequests, Code: "RESOURCE_EXHAUSTED"},
			Quota:            conformance.Code{Status: http.StatusTooManyRequests, Code: perDay},
			Overload:         conformance.Code{Status: http.StatusServiceUnavailable, Code: "UNAVAILABLE"},
			Internal:         conformance.Code{Status: http.StatusInternalServerError, Code: "INTERNAL"},
			OverloadInStream: geminitest.ErrorLines(http.StatusServiceUnavailable, "UNAVAILABLE"),
			InternalInStream: geminitest.ErrorEvent(http.StatusInternalServerError, "INTERNAL"),
		},
	}
}

func TestConforms(t *testing.T) {
	t.Parallel()
	conformance.Run(t, adapter())
}
