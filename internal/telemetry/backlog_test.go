package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/telemetry"
)

func scrape(t *testing.T, m *telemetry.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	return w.Body.String()
}

func TestBacklog(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)

	t.Run("CountsEveryProviderAndReadsAgainAfterFiveSeconds", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			reads := 0
			m := telemetry.NewMetrics()
			m.WatchBacklog([]string{"demo", "openai"}, func(context.Context) (telemetry.Backlog, error) {
				reads++
				return telemetry.Backlog{Unknown: map[string]int{"openai": reads, "gone": 7}, Waiting: 3}, nil
			}, quiet)
			for range 3 {
				text := scrape(t, m)
				require.Contains(t, text, `docket_attempts_unknown{provider="demo"} 0`)
				require.Contains(t, text, `docket_attempts_unknown{provider="openai"} 1`)
				require.Contains(t, text, `docket_attempts_unknown{provider="gone"} 7`)
				require.Contains(t, text, "docket_jobs_waiting 3")
			}
			after(t, 5*time.Second)
			require.Contains(t, scrape(t, m), `docket_attempts_unknown{provider="openai"} 2`)
		})
	})

	t.Run("ShowsNoNumberAndNoOldOneWhileTheDatabaseFails", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var fail error
			reads := 0
			m := telemetry.NewMetrics()
			m.WatchBacklog([]string{"demo"}, func(context.Context) (telemetry.Backlog, error) {
				reads++
				return telemetry.Backlog{Waiting: 3}, fail
			}, quiet)
			require.Contains(t, scrape(t, m), "docket_jobs_waiting 3")
			fail = errors.New("no database")
			after(t, 5*time.Second)
			for range 3 {
				text := scrape(t, m)
				require.NotContains(t, text, "docket_jobs_waiting")
				require.NotContains(t, text, "docket_attempts_unknown")
				require.Contains(t, text, "docket_races_lost_total", "the rest of the page stays")
			}
			require.Equal(t, 2, reads, "a failure is not asked again at once")
		})
	})

	t.Run("WaitsTwoSecondsAtMost", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := telemetry.NewMetrics()
			m.WatchBacklog(nil, func(ctx context.Context) (telemetry.Backlog, error) {
				<-ctx.Done()
				return telemetry.Backlog{}, ctx.Err()
			}, quiet)
			start := time.Now()
			require.NotContains(t, scrape(t, m), "docket_jobs_waiting")
			require.Equal(t, 2*time.Second, time.Since(start))
		})
	})
}

// after lets synctest's clock run; nothing really waits.
func after(t *testing.T, d time.Duration) {
	t.Helper()
	<-time.After(d)
}

func TestAttemptsSettled(t *testing.T) {
	t.Parallel()
	m := telemetry.NewMetrics()
	m.AttemptSettled("FAILED", "callback")
	m.AttemptSettled("FAILED", "callback")
	require.Contains(t, scrape(t, m), `docket_attempts_settled_total{state="FAILED",via="callback"} 2`)
}
