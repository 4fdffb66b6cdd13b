package acceptance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers/providertest"
)

// replica is a gateway with a provider of its own, so that the provider's log tells who sent what.
type replica struct {
	*gateway

	fake *fake
}

// replicas are two gateways on one database.
func replicas(t *testing.T, s settings) [2]replica {
	t.Helper()
	var out [2]replica
	for i := range out {
		out[i].gateway, out[i].fake = newGateway(t, s)
	}
	return out
}

// who returns the replica that sent the attempt first, and the other one.
func who(t *testing.T, pair [2]replica) (sender, other replica) {
	t.Helper()
	await.Until(t, "a request", func() bool { return len(pair[0].fake.sent())+len(pair[1].fake.sent()) > 0 })
	if len(pair[0].fake.sent()) > 0 {
		return pair[0], pair[1]
	}
	return pair[1], pair[0]
}

// Both answers really come in: the loser's worker is in another process and has not heard yet that it lost.
func TestFirstFinisherOfARaceWinsWhateverTheOrder(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			pair := replicas(t, settings{database: database, places: 1, tasks: writeTasks(t)})
			finishA, finishB := make(chan struct{}), make(chan struct{})
			for _, r := range pair {
				r.fake.OnModel("primary", acknowledged(finishA, "loser-canary-5d1f"))
			}
			c := pair[0].client
			j := c.create(t, intent("k"))
			c.attemptBecomes(t, j.ID, 1, "RUNNING")
			sender, other := who(t, pair)
			// The proof is for the provider's configuration, and so for the replica that will send.
			prove(t, other.config, "echo", second)
			other.fake.OnModel("second", acknowledged(finishB, "winner-canary-77ab"))
			started := other.start(t, j.ID, second)
			require.Equal(t, typeStarted, started.Typename, "%+v", started)
			c.attemptBecomes(t, j.ID, 2, "RUNNING")
			require.Len(t, other.fake.sent(), 1)

			close(finishB)
			won := c.becomes(t, j.ID, "SUCCEEDED")
			require.Equal(t, "SUPERSEDED", won.Attempts[0].State)
			require.Nil(t, won.Attempts[0].Usage)
			close(finishA)
			await.Until(t, "the loser's usage", func() bool { return c.job(t, j.ID).Attempts[0].Usage != nil })

			done := c.job(t, j.ID)
			require.JSONEq(t, `{"text": "winner-canary-77ab"}`, string(done.Result))
			require.Equal(t, won.Version, done.Version)
			require.Equal(t, started.Attempt.ID, done.CompletedBy.ID)
			require.Equal(t, "SUPERSEDED", done.Attempts[0].State)
			require.Equal(t, "SUPERSEDED", done.Attempts[0].code())
			require.Equal(t, 11, *done.Attempts[0].Usage.InputTokens)
			require.Equal(t, 7, *done.Attempts[0].Usage.OutputTokens)
			requireAbsent(t, database, "loser-canary", "winner-canary")
			require.NotContains(t, pair[0].log.String()+pair[1].log.String(), "canary")
			require.Len(t, sender.fake.sent(), 1)
		})
	}
}

// In one process the loser is told to stop, in the middle of its answer.
func TestLoserOfARaceIsToldToStop(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			// With a long lease nothing but the call of the one who won can stop it in time.
			g, f := newGateway(t, settings{database: database, lease: 10 * time.Minute})
			prove(t, g.config, "echo", second)
			stopped := make(chan struct{})
			f.OnModel("primary", func(x *providertest.Exchange) {
				x.Headers()
				x.Content(`{"text": "loser-canary`)
				x.Until(nil)
				close(stopped)
			})
			f.OnModel("second", answer("winner-canary"))
			j := g.create(t, intent("k"))
			g.attemptBecomes(t, j.ID, 1, "RUNNING")
			require.Equal(t, typeStarted, g.start(t, j.ID, second).Typename)
			done := g.becomes(t, j.ID, "SUCCEEDED")
			require.Equal(t, []string{"SUPERSEDED", "SUCCEEDED"}, []string{done.Attempts[0].State, done.Attempts[1].State})
			await.Receive(t, "the end of the loser's request", stopped)
			requireAbsent(t, database, "loser-canary", "winner-canary")
		})
	}
}

func TestRaceIsOnlyForTasksThatAllowIt(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := newGateway(t, settings{database: database})
			prove(t, g.config, "strict", second)
			finish := make(chan struct{})
			f.OnModel("primary", acknowledged(finish, "alone"))
			j := g.create(t, variables{"idempotencyKey": "k", "task": "strict", "input": variables{"text": "hello"}, "hedgeAfterMs": 1})
			a := g.attemptBecomes(t, j.ID, 1, "RUNNING")
			blocked := g.start(t, j.ID, second)
			require.Equal(t, typeBlocked, blocked.Typename)
			require.Equal(t, a.ID, blocked.BlockedBy.ID)
			close(finish)
			require.Len(t, g.becomes(t, j.ID, "SUCCEEDED").Attempts, 1)
		})
	}
}
