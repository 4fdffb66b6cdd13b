package acceptance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/providertest"
)

func TestTimeoutIsUnknownBlocksAndOpensAgain(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := newGateway(t, settings{database: database, ack: 300 * time.Millisecond})
			f.Enqueue(providertest.Hang())
			j := g.create(t, intent("k"))
			a := g.attemptBecomes(t, j.ID, 1, "UNKNOWN")
			require.Equal(t, "UNKNOWN", g.job(t, j.ID).State)
			require.NotEmpty(t, a.code())

			blocked := g.start(t, j.ID, "")
			require.Equal(t, typeBlocked, blocked.Typename)
			require.Equal(t, "ATTEMPT_BLOCKED", blocked.Code)
			require.Equal(t, a.ID, blocked.BlockedBy.ID)
			require.Equal(t, "UNKNOWN", blocked.BlockedBy.State)

			cancelled := g.cancelAttempt(t, a.ID)
			require.Equal(t, typeCancelled, cancelled.Typename)
			require.Equal(t, "CANCELLED", cancelled.Attempt.State)
			require.Equal(t, "WAITING", cancelled.Job.State)
			require.Equal(t, "WAITING", g.job(t, j.ID).State)

			started := g.start(t, j.ID, primary)
			require.Equal(t, typeStarted, started.Typename, "%+v", started)
			require.Equal(t, "MANUAL", started.Attempt.Reason)
			done := g.becomes(t, j.ID, "SUCCEEDED")
			require.Equal(t, started.Attempt.ID, done.CompletedBy.ID)
			require.Equal(t, "CANCELLED", done.Attempts[0].State)
			require.Len(t, f.sent(), 2)
			f.requireOnce(t)
		})
	}
}

func TestLateAnswerWithinLingerWins(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := fresh(t)
			g, f := newGateway(t, settings{database: database, ack: 300 * time.Millisecond})
			late := make(chan struct{})
			f.Enqueue(providertest.After(late, answer("better late")))
			j := g.create(t, variables{"idempotencyKey": "k", "task": "strict", "input": variables{"text": "hello"}})
			a := g.attemptBecomes(t, j.ID, 1, "UNKNOWN")
			require.Equal(t, "UNKNOWN", g.job(t, j.ID).State)
			close(late)
			done := g.becomes(t, j.ID, "SUCCEEDED")
			require.JSONEq(t, `{"text": "better late"}`, string(done.Result))
			require.Equal(t, a.ID, done.CompletedBy.ID)
			require.Len(t, done.Attempts, 1)
			require.Nil(t, done.last().Error)
			require.Len(t, f.sent(), 1)
		})
	}
}
