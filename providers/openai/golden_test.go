package openai_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/providertest"
)

// The exact bodies that are sent for the shipped tasks: go test ./providers/openai -update
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	reasoning := func(c *providers.Config) { c.Models[0].Reasoning = true }
	conformance.RequestBodies(t, []conformance.Way{
		{Name: "responses", Adapter: responsesAdapter()},
		{Name: "responses-background", Adapter: responsesAdapter(), Change: func(c *providers.Config) { c.Background = true }},
		{Name: "responses-reasoning", Adapter: responsesAdapter(), Change: reasoning},
		{Name: "responses-not-strict", Adapter: responsesAdapter(), Change: func(c *providers.Config) { c.StrictSchema = false }},
		{Name: "chat", Adapter: chatAdapter()},
		{Name: "chat-reasoning", Adapter: chatAdapter(), Change: reasoning},
	}, func(t *testing.T, e providertest.Entry) {
		t.Helper()
		require.Equal(t, http.MethodPost, e.Method)
	})
}
