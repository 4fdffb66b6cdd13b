package anthropic_test

import (
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/shared"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/anthropic"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/providertest/sdkwire"
)

func TestFaultsSpeakTheSDKsTypes(t *testing.T) {
	t.Parallel()
	for _, way := range []string{anthropic.StructuredNative, anthropic.StructuredTool} {
		p, err := anthropic.New(providers.Config{BaseURL: "http://127.0.0.1:1", Models: []providers.Model{{Name: `a "model"`, StructuredOutput: way}}})
		require.NoError(t, err)
		conformance.Faults(t, p.(providers.WireFaulter).WireFaults(`a "model"`), func(data []byte) ([]string, error) {
			switch gjson.GetBytes(data, "type").String() {
			case "ping": // the SDK has no type for it
				return nil, nil
			case "error":
				return sdkwire.Decode[shared.ErrorResponse](data)
			}
			return sdkwire.Decode[sdk.MessageStreamEventUnion](data)
		}, sdkwire.Decode[shared.ErrorResponse])
	}
}
