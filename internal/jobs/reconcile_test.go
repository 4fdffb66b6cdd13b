package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
)

const takes = 10 * time.Minute

var (
	byHandle = Question{Targets: []string{"demo/a", "demo/b"}, Takes: takes}
	resend   = Question{Targets: []string{"demo/a", "demo/b"}, Takes: takes, Resend: true}
)

// withHandle makes a job whose attempt is UNKNOWN and was acknowledged with a handle.
func (b *testBundle) withHandle(t *testing.T, listens time.Duration) (*ent.Job, *ent.Attempt) {
	t.Helper()
	j := b.create(t, "plain")
	a := b.last(t, j.ID)
	l := b.sent(t, a)
	require.NoError(t, b.Acknowledge(t.Context(), l, "", "handle-1"))
	b.settle(t, a, Outcome{Unknown: true, Failure: &Failure{Code: "TIMEOUT"}, Listens: listens})
	return j, b.attempt(t, a.ID)
}

func (b *testBundle) unanswered(t *testing.T, q Question) []string {
	t.Helper()
	ids, err := b.Unanswered(t.Context(), q, 100)
	require.NoError(t, err)
	return ids
}

// askable requires that a question is due, or is not, as those who look for work and those who take it see it.
func (b *testBundle) askable(t *testing.T, q Question, a *ent.Attempt, want bool, why string) *Asked {
	t.Helper()
	if want {
		require.Contains(t, b.unanswered(t, q), a.ID, why)
	} else {
		require.NotContains(t, b.unanswered(t, q), a.ID, why)
	}
	asked, err := b.Ask(t.Context(), q, a.ID)
	if want {
		require.NoError(t, err, why)
		return asked
	}
	require.ErrorIs(t, err, ErrNotYours, why)
	return nil
}

func TestAsk(t *testing.T) {
	t.Parallel()

	t.Run("AsksByHandleAtOnceAndThenWithBackOff", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.withHandle(t, time.Hour)
			before := b.eventTypes(t, j.ID)
			asked := b.askable(t, byHandle, a, true, "asking has no effects: it need not wait for the linger")
			require.Equal(t, 1, asked.Number)
			require.Equal(t, "handle-1", *asked.Attempt.ProviderHandle)
			require.Equal(t, j.ID, asked.Job.ID)
			require.Equal(t, "plain", asked.Task.Name)
			b.askable(t, byHandle, a, false, "under way")
			require.NoError(t, b.Unsettled(t.Context(), asked))
			b.askable(t, byHandle, a, false, "back-off")
			b.aged(t, a, "ask_at", time.Second)
			require.Equal(t, 2, b.askable(t, byHandle, a, true, "back-off is over").Number)
			now := b.attempt(t, a.ID)
			require.Equal(t, attempt.StateUNKNOWN, now.State)
			require.Nil(t, now.ResentAt)
			require.Equal(t, before, b.eventTypes(t, j.ID), "a question without effects is no change")
		})
	})

	t.Run("IsOnlyAboutUnknownAttemptsWithAHandleAtTheTargets", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, none := b.unknown(t, "plain")
			b.askable(t, byHandle, none, false, "no handle")
			_, a := b.withHandle(t, 0)
			b.askable(t, Question{Targets: []string{"demo/b"}, Takes: takes}, a, false, "elsewhere")
			b.askable(t, Question{Takes: takes}, a, false, "no target at all")
			require.True(t, b.settle(t, a, answer("a")).Landed)
			b.askable(t, byHandle, a, false, "settled")
			running := b.last(t, b.create(t, "plain").ID)
			require.NoError(t, b.Acknowledge(t.Context(), b.sent(t, running), "", "handle-2"))
			b.askable(t, byHandle, running, false, "its worker is at it")
			b.askable(t, resend, running, false, "its worker is at it")
		})
	})

	t.Run("ResendsNotBeforeNobodyListens", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.withHandle(t, time.Hour)
			b.askable(t, resend, a, false, "its worker lingers")
			b.aged(t, a, "sent_at", 2*time.Hour) // the linger began late
			b.askable(t, resend, a, false, "its worker lingers")
			b.aged(t, a, "ask_at", time.Second)
			skipping := resend
			skipping.SkipHandles = true
			b.askable(t, skipping, a, false, "it is asked by handle")
			require.NotContains(t, b.eventTypes(t, j.ID), EventAttemptResent)
			asked := b.askable(t, resend, a, true, "nobody listens")
			require.Contains(t, b.eventTypes(t, j.ID), EventAttemptResent)
			require.NotNil(t, b.attempt(t, a.ID).ResentAt)
			require.Equal(t, 1, b.attempt(t, a.ID).JobVersion)
			b.askable(t, resend, a, false, "under way")
			first, err := b.store.Client().Attempt.Query().Where(attempt.ID(a.ID), b.passed(attempt.FieldAskAt, -takes)).Exist(b.sys)
			require.NoError(t, err)
			require.False(t, first, "nobody else sends before it must have ended")
			require.NoError(t, b.Unsettled(t.Context(), asked))
			b.askable(t, resend, a, false, "back-off")

			_, lost := b.unknown(t, "plain") // with its connection: nobody listens
			b.aged(t, lost, "ask_at", time.Second)
			b.askable(t, resend, lost, true, "nobody listens")
		})
	})

	// Whether a lost worker still listens, cut off from the database, cannot be told.
	t.Run("ResendsALostWorkersAttemptAfterTheLongestRequest", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			b.sent(t, a)
			b.expireLeases(t)
			swept, err := b.SweepLeases(t.Context())
			require.NoError(t, err)
			require.Equal(t, Swept{Unknown: 1}, swept)
			b.askable(t, resend, a, false, "it may still listen")
			b.aged(t, a, "sent_at", takes-time.Minute)
			b.askable(t, resend, a, false, "it may still listen")
			b.aged(t, a, "sent_at", takes+time.Minute)
			b.askable(t, resend, a, true, "it cannot listen any more")
		})
	})

	t.Run("ResendsAFewTimesAndNotForEver", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, a := b.unknown(t, "plain")
			for i := range maxResends {
				b.aged(t, a, "ask_at", time.Second)
				asked := b.askable(t, resend, a, true, "once more")
				require.Equal(t, i+1, asked.Number)
				require.NoError(t, b.Unsettled(t.Context(), asked))
			}
			b.aged(t, a, "ask_at", time.Second)
			b.askable(t, resend, a, false, "often enough")

			_, old := b.unknown(t, "plain")
			b.aged(t, old, "ask_at", time.Second)
			b.aged(t, old, "sent_at", resendWithin+time.Minute)
			b.askable(t, resend, old, false, "the provider may have forgotten the key")

			_, h := b.withHandle(t, 0)
			require.NoError(t, b.exec(t, "UPDATE attempts SET asked = 1000 WHERE id = '"+h.ID+"'"))
			b.aged(t, h, "ask_at", time.Second)
			b.askable(t, byHandle, h, true, "asking has no effects")
		})
	})

	t.Run("ResendsToTheSameEndpointOnly", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.last(t, b.create(t, "plain").ID)
			l := b.take(t, a)
			l.SentTo = "here"
			require.NoError(t, b.MarkSent(t.Context(), l))
			b.loses(t, a)
			b.aged(t, a, "ask_at", time.Second)
			b.askable(t, resend, a, false, "elsewhere")
			here := resend
			here.SentTo = "here"
			b.askable(t, here, a, true, "the endpoint that knows the key")
		})
	})

	t.Run("NeverResendsWhatWasNotSent", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, a := b.unknown(t, "plain")
			require.NoError(t, b.exec(t, "UPDATE attempts SET sent_at = NULL WHERE id = '"+a.ID+"'"))
			b.aged(t, a, "ask_at", time.Second)
			b.askable(t, resend, a, false, "nobody marked it as sent")
		})
	})

	t.Run("AsksTheGateBeforeAFallbackIsResent", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.create(t, "plain")
			b.running(t, b.last(t, j.ID))
			b.fails(t, b.last(t, j.ID), false)
			a := b.last(t, j.ID)
			require.Equal(t, "demo/b", a.Target)
			b.running(t, a)
			b.loses(t, a)
			b.aged(t, a, "ask_at", time.Second)
			b.gate.close("demo/b")
			_, err := b.Ask(t.Context(), resend, a.ID)
			require.ErrorIs(t, err, ErrNotYours)
			require.NotContains(t, b.unanswered(t, resend), a.ID, "put off")
			require.Zero(t, b.attempt(t, a.ID).Asked, "and not counted")
			b.gate.toggle("demo/b")
			b.aged(t, a, "ask_at", time.Second)
			b.askable(t, resend, a, true, "the gate is open again")
		})
	})

	t.Run("OneOfManyGetsTheQuestion", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for _, q := range []Question{byHandle, resend} {
				j, a := b.withHandle(t, 0)
				b.aged(t, a, "ask_at", time.Second)
				got := 0
				for _, r := range inParallel(8, func(int) (*Asked, error) { return b.Ask(t.Context(), q, a.ID) }) {
					if r.err == nil {
						got++
						continue
					}
					require.ErrorIs(t, r.err, ErrNotYours)
				}
				require.Equal(t, 1, got)
				require.Equal(t, 1, b.attempt(t, a.ID).Asked)
				b.replay(t, j.ID)
			}
		})
	})

	t.Run("IsNotPutOffByAnOlderQuestion", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			_, a := b.withHandle(t, 0)
			first := b.askable(t, byHandle, a, true, "first")
			b.aged(t, a, "ask_at", time.Second)
			b.askable(t, byHandle, a, true, "second")
			at := b.attempt(t, a.ID).AskAt
			require.NoError(t, b.Unsettled(t.Context(), first))
			require.Equal(t, at, b.attempt(t, a.ID).AskAt, "the second is under way")

			_, a = b.withHandle(t, 0)
			first = b.askable(t, byHandle, a, true, "first")
			require.True(t, b.settle(t, a, answer("a")).Landed)
			at = b.attempt(t, a.ID).AskAt
			require.NoError(t, b.Unsettled(t.Context(), first))
			require.Equal(t, at, b.attempt(t, a.ID).AskAt, "settled meanwhile")
		})
	})

	t.Run("SweepsLeaveItAlone", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, a := b.withHandle(t, 0)
			b.askable(t, byHandle, a, true, "due")
			before := b.eventTypes(t, j.ID)
			for _, sweep := range []func() (Swept, error){
				func() (Swept, error) { return b.SweepLeases(t.Context()) },
				func() (Swept, error) { return b.SweepQueue(t.Context()) },
			} {
				s, err := sweep()
				require.NoError(t, err)
				require.Zero(t, s)
			}
			require.Equal(t, before, b.eventTypes(t, j.ID))
		})
	})

	t.Run("TellsHowItWasSettled", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			won := answer("found")
			won.Via = ViaAsked
			j, a := b.withHandle(t, 0)
			require.True(t, b.settle(t, a, won).Landed)
			require.Equal(t, job.StateSUCCEEDED, b.job(t, j.ID).State)
			require.Contains(t, b.details(t, j.ID), `"settledBy":"provider asked"`)

			j, a = b.withHandle(t, 0)
			b.settle(t, a, Outcome{Failure: &Failure{Code: "REFUSED"}, Via: ViaResent})
			require.Equal(t, attempt.StateFAILED, b.attempt(t, a.ID).State)
			require.Contains(t, b.details(t, j.ID), `"settledBy":"re-sent"`)
			require.Equal(t, "demo/b", b.last(t, j.ID).Target, "the route goes on")

			j, a = b.withHandle(t, 0)
			b.settle(t, a, answer("late"))
			require.NotContains(t, b.details(t, j.ID), "settledBy")
		})
	})
}
