package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/telemetry"
)

func TestGates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var fail error
		m := telemetry.NewMetrics()
		m.WatchGates(func(context.Context) (telemetry.Gates, error) {
			return telemetry.Gates{
				Open:    []telemetry.GateOpen{{"triage", "a/one", true}, {"triage", "b/two", false}},
				Changes: []telemetry.GateChanges{{"triage", "b/two", "STALE", 3}},
			}, fail
		}, slog.New(slog.DiscardHandler))
		text := scrape(t, m)
		require.Contains(t, text, `docket_gate_open{target="a/one",task="triage"} 1`)
		require.Contains(t, text, `docket_gate_open{target="b/two",task="triage"} 0`)
		require.Contains(t, text, `docket_gate_changes_total{state="STALE",target="b/two",task="triage"} 3`)
		fail = errors.New("no database")
		after(t, 5*time.Second)
		text = scrape(t, m)
		require.NotContains(t, text, "docket_gate_")
		require.Contains(t, text, "docket_races_lost_total", "the rest of the page stays")
	})
}
