package gemini_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/providertest"
)

// The exact bodies that are sent for the shipped tasks: go test ./providers/gemini -update
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	conformance.RequestBodies(t, []conformance.Way{
		{Name: "generate", Adapter: adapter()},
		{Name: "generate-reasoning", Adapter: adapter(), Change: func(c *providers.Config) { c.Models[0].Reasoning = true }},
	}, func(t *testing.T, e providertest.Entry) {
		t.Helper()
		require.Equal(t, http.MethodPost+" /v1/models/"+conformance.Model+":streamGenerateContent", e.Method+" "+e.Path)
	})
}
