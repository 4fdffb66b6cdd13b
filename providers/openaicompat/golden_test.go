package openaicompat_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/providertest"
)

// The exact bodies that are sent for the shipped tasks: go test ./providers/openaicompat -update
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	conformance.RequestBodies(t, []conformance.Way{
		{Name: "chat", Adapter: adapter()},
		{Name: "chat-strict", Adapter: adapter(), Change: func(c *providers.Config) { c.StrictSchema = true }},
	}, func(t *testing.T, e providertest.Entry) {
		t.Helper()
		require.Equal(t, http.MethodPost+" /v1/chat/completions", e.Method+" "+e.Path)
	})
}
