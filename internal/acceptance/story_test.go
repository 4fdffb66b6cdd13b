package acceptance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/web/webtest"
)

// An empty folder, no configuration: demo/inkjet jams, the proven demo/laser takes over, and a subscriber watches it.
func TestFreshMachineFailsOverBeforeItsWatchers(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			p := run(t, t.TempDir(), []string{"DOCKET_LISTEN=127.0.0.1:0", "DOCKET_LOG_FORMAT=json", "DOCKET_DATABASE=" + database})
			nobody := p.as("") // no header: the operator "local"
			for transport := range transports {
				j := nobody.create(t, variables{"idempotencyKey": transport, "task": "triage", "input": variables{
					"subject": "Charged twice", "text": "I was charged twice for order 48213. Please refund one of the charges."}})
				require.Equal(t, "demo/inkjet", j.Target)
				require.Equal(t, []string{"demo/laser"}, j.Fallbacks)
				require.Equal(t, "local", j.Owner)
				w := nobody.watch(t, transport, j.ID)
				seen := rest[attempt](t, w.attempts, "attemptUpdated")
				events := rest[event](t, w.events, "jobEvents")

				done := nobody.job(t, j.ID)
				require.Equal(t, "SUCCEEDED", done.State)
				require.Len(t, done.Attempts, 2)
				jam, laser := done.Attempts[0], done.Attempts[1]
				require.Equal(t, []string{"demo/inkjet", "PRIMARY", "FAILED"}, []string{jam.Target, jam.Reason, jam.State})
				require.False(t, jam.Error.Retryable)
				require.Equal(t, []string{"demo/laser", "FALLBACK", "SUCCEEDED"}, []string{laser.Target, laser.Reason, laser.State})
				require.Equal(t, laser.ID, done.CompletedBy.ID)
				result := decode[map[string]string](t, done.Result)
				require.Equal(t, "billing", result["category"])

				requireStory(t, events, 0, nobody.events(t, j.ID))
				require.Equal(t, []string{"STARTING", "RUNNING", "FAILED"}, changes(events, jam.ID))
				require.Equal(t, []string{"STARTING", "RUNNING", "SUCCEEDED"}, changes(events, laser.ID))
				// The first message is the current state; from there on nothing is left out.
				require.Subset(t, []string{"STARTING", "RUNNING", "FAILED"}, states(seen, 1))
				require.Equal(t, "FAILED", seen[len(states(seen, 1))-1].State)
				require.Equal(t, []string{"STARTING", "RUNNING", "SUCCEEDED"}, states(seen, 2))
			}
			p.terminate(t)
			p.exits(t)
		})
	}
}

// The page that the gateway serves, in a real browser that reaches no other host.
func TestPageInTheBrowserRunsAJobAndWatchesIt(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Listen = "127.0.0.1:0"
	cfg.Database = config.NewDSN(sqlite(t))
	cfg.Tasks = []string{"../../contracts/tasks"}
	g := startWith(t, cfg)
	id := webtest.RunsOperation(t, g.url)
	require.Equal(t, "SUCCEEDED", g.as("").becomes(t, id, "SUCCEEDED").State)
	webtest.RunsSubscription(t, g.url, id, `"state": "SUCCEEDED"`)
}
