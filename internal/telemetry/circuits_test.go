package telemetry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/telemetry"
)

func TestCircuits(t *testing.T) {
	t.Parallel()
	m := telemetry.NewMetrics()
	states := map[string]int{"openai/a": 0, "openai/b": 2}
	m.WatchCircuits(func() map[string]int { return states })
	text := scrape(t, m)
	require.Contains(t, text, `docket_circuit_state{target="openai/a"} 0`)
	require.Contains(t, text, `docket_circuit_state{target="openai/b"} 2`)
	states["openai/b"] = 1
	require.Contains(t, scrape(t, m), `docket_circuit_state{target="openai/b"} 1`, "as it is now")
	m.CircuitRefused("openai/b")
	require.Contains(t, scrape(t, m), `docket_circuit_refusals_total{target="openai/b"} 1`)
	m.Cancelled("openai/b", true)
	m.Cancelled("openai/b", false)
	require.Contains(t, scrape(t, m), `docket_provider_cancellations_total{result="taken",target="openai/b"} 1`)
	require.Contains(t, scrape(t, m), `docket_provider_cancellations_total{result="failed",target="openai/b"} 1`)
}
