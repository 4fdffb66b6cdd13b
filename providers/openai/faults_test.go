package openai_test

import (
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/openai"
	"github.com/docket-gateway/docket/providers/providertest/sdkwire"
)

// The shapes of Chat Completions are openai-compatible's too.
func TestFaultsSpeakTheSDKsTypes(t *testing.T) {
	t.Parallel()
	for api, event := range map[string]func([]byte) ([]string, error){
		openai.APIResponses: sdkwire.Decode[responses.ResponseStreamEventUnion], openai.APIChat: sdkwire.Decode[sdk.ChatCompletionChunk],
	} {
		p, err := openai.New(providers.Config{BaseURL: "http://127.0.0.1:1", API: api})
		require.NoError(t, err)
		conformance.Faults(t, p.(providers.WireFaulter).WireFaults(`a "model"`), event, func(body []byte) ([]string, error) {
			return sdkwire.Decode[sdk.Error]([]byte(gjson.GetBytes(body, "error").Raw))
		})
	}
}
