package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/gemini"
	"github.com/docket-gateway/docket/providers/providertest/sdkwire"
)

func TestFaultsSpeakTheSDKsTypes(t *testing.T) {
	t.Parallel()
	p, err := gemini.New(providers.Config{BaseURL: "http://127.0.0.1:1", APIKey: "k"})
	require.NoError(t, err)
	conformance.Faults(t, p.(providers.WireFaulter).WireFaults(`a "model"`), sdkwire.Fields[genai.GenerateContentResponse],
		sdkwire.Fields[struct {
			Error *genai.APIError `json:"error"`
		}])
}
