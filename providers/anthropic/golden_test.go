package anthropic_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/anthropic"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/providertest"
)

// The exact bodies that are sent for the shipped tasks: go test ./providers/anthropic -update
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	reasoning := func(on bool) func(*providers.Config) {
		return func(c *providers.Config) { c.Models[0].Reasoning = on }
	}
	conformance.RequestBodies(t, []conformance.Way{
		{Name: "native", Adapter: adapter(anthropic.StructuredNative), Change: reasoning(false)},
		{Name: "native-reasoning", Adapter: adapter(anthropic.StructuredNative), Change: reasoning(true)},
		{Name: "tool", Adapter: adapter(anthropic.StructuredTool), Change: reasoning(false)},
	}, func(t *testing.T, e providertest.Entry) {
		t.Helper()
		require.Equal(t, http.MethodPost, e.Method)
		require.Equal(t, "/v1/messages", e.Path)
	})
}
