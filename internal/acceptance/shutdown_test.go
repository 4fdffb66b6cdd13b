package acceptance

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers/providertest"
)

func TestTerminatedProcessDrainsAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			const bound = 5 * time.Second // in which what is drained ends
			f := startFake(t)
			s := settings{database: database, url: f.url, places: 2, shutdown: bound, tasks: writeTasks(t)}
			finish := make(chan struct{})
			f.Enqueue(acknowledged(finish, "just in time"), acknowledged(nil, "never"))
			p := s.serve(t)
			create := func(n int) job {
				return p.create(t, variables{"idempotencyKey": fmt.Sprint(n), "task": "echo", "input": variables{"text": fmt.Sprint(n)}})
			}
			byAttempt := map[string]job{}
			var waiting []job
			for n := range 5 {
				j := create(n)
				byAttempt[j.last().ID] = j
				waiting = append(waiting, j)
			}
			f.arrives(t, 2)
			drained, stuck := byAttempt[f.sent()[0].Key], byAttempt[f.sent()[1].Key]
			p.attemptBecomes(t, drained.ID, 1, "RUNNING")
			p.attemptBecomes(t, stuck.ID, 1, "RUNNING")
			watched := p.watch(t, "WebSocket", drained.ID)
			left := p.overWebSocket(t, eventsStream, variables{"id": stuck.ID})

			p.terminate(t)
			asked := time.Now()
			await.Until(t, "not ready any more", func() bool { return p.getStatus(t, "/readyz") == http.StatusServiceUnavailable })
			require.Equal(t, http.StatusOK, p.getStatus(t, "/healthz"))
			waiting = append(waiting, create(5)) // accepted, so it must be done by somebody
			close(finish)
			// Its watchers see it end, although the process is stopping.
			attempts := rest[attempt](t, watched.attempts, "attemptUpdated")
			require.Equal(t, "SUCCEEDED", attempts[len(attempts)-1].State)
			rest[event](t, watched.events, "jobEvents")
			p.exits(t)
			require.Less(t, time.Since(asked), bound+await.Patience)
			left.brokenOff(t, "WebSocket") // it was told, before the process was gone
			require.Len(t, f.sent(), 2, "it took no new work")

			p = s.serve(t)
			require.JSONEq(t, `{"text": "just in time"}`, string(p.job(t, drained.ID).Result))
			cut := p.job(t, stuck.ID)
			require.Equal(t, "UNKNOWN", cut.State)
			require.Equal(t, "UNKNOWN", cut.last().State)
			for _, j := range waiting {
				if j.ID != stuck.ID {
					require.Len(t, p.becomes(t, j.ID, "SUCCEEDED").Attempts, 1)
				}
			}
			require.Len(t, f.sent(), 6)
			f.requireOnce(t)
		})
	}
}

// The other process need not wait for the first one's end.
func TestOtherProcessGoesOnWhileOneDrains(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	s := settings{database: databases.DSN(t), url: f.url, places: 1, shutdown: await.Patience, tasks: writeTasks(t)}
	finish := make(chan struct{})
	f.Enqueue(providertest.After(finish, answer("slow")))
	first := s.serve(t)
	slow := first.create(t, variables{"idempotencyKey": "slow", "task": "echo", "input": variables{}})
	f.arrives(t, 1)
	next := first.create(t, variables{"idempotencyKey": "next", "task": "echo", "input": variables{}})
	first.terminate(t)
	await.Until(t, "not ready any more", func() bool { return first.getStatus(t, "/readyz") == http.StatusServiceUnavailable })
	require.Equal(t, "QUEUED", first.job(t, next.ID).State)

	other := s.serve(t)
	other.becomes(t, next.ID, "SUCCEEDED")
	require.Equal(t, "QUEUED", other.job(t, slow.ID).State)
	close(finish)
	first.exits(t)
	require.Equal(t, "SUCCEEDED", other.job(t, slow.ID).State)
	f.requireOnce(t)
}
