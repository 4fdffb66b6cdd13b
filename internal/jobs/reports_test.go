package jobs

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/store"
)

// Public bug reports of other systems as cases: what went wrong there, forced to happen here, with its right outcome.
// Reports 1 to 3 and a part of 4 and 5 are about interleavings of transactions and are played here; those that reach
// the endpoint are in internal/acceptance/reports_test.go, under the same numbers.

// A maintenance pass had read a job as running, the worker completed it, and the pass wrote its verdict by the job's id
// alone, over the result. Shape of riverqueue/river issue 1302.
func TestBugReport1SweeperWritesAfterTheWorkerCompleted(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]Outcome{
		"Answer":  answer("a"),
		"Failure": {Failure: &Failure{Code: "X", Message: "no"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, b *testBundle) {
				p := b.withPause(t)
				j, a := b.createWithHook(t, "single")
				b.running(t, a)
				b.expireLeases(t)
				seen := b.last(t, j.ID) // the sweeper's read: RUNNING, its lease over
				require.Equal(t, attempt.StateRUNNING, seen.State)

				var verdict Verdict
				var swept Swept
				p.meanwhile(t, func() (err error) {
					verdict, err = b.Settle(t.Context(), a.ID, outcome)
					return err
				}, func() error {
					return b.sweepOne(b.sys, seen, &swept)
				})
				require.True(t, verdict.Landed)
				require.Equal(t, Swept{}, swept)
				require.Equal(t, verdict.Attempt.State, b.attempt(t, a.ID).State)
				require.Equal(t, verdict.Job.State, b.job(t, j.ID).State)
				require.Equal(t, outcome.Failure == nil, b.job(t, j.ID).State == job.StateSUCCEEDED)
				require.Equal(t, EventJobState, b.lastEvent(t, j.ID).Type, "the sweeper wrote no event")
				b.replay(t, j.ID)
			})
		})
	}
}

// A stale job was recovered and started again, and the first executor's completion was written over the running one,
// which it was not. Shape of sidequestjs/sidequest issue 208.
func TestBugReport2RecoveredAttemptFinishesLate(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]Outcome{
		"Answer":  answer("canary-2f60"),
		"Failure": {Failure: &Failure{Code: "CANARY-2f60", Message: "canary-2f60"}},
		"Unknown": {Unknown: true, Failure: &Failure{Code: "CANARY-2f60", Message: "canary-2f60"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDatabase(t, func(t *testing.T, b *testBundle) {
				j := b.create(t, "plain")
				a := b.last(t, j.ID)
				lease := b.running(t, a)
				b.expireLeases(t)
				swept, err := b.SweepLeases(t.Context())
				require.NoError(t, err)
				require.Equal(t, Swept{Unknown: 1}, swept)
				_, err = b.CancelAttempt(b.ann, a.ID, nil)
				require.NoError(t, err)
				started, err := b.StartAttempt(b.ann, j.ID, new("demo/a"))
				require.NoError(t, err)
				second := started.Attempt
				b.running(t, second)
				require.Equal(t, a.JobVersion, second.JobVersion, "the version alone does not tell A from B")
				events := b.eventTypes(t, j.ID)

				require.ErrorIs(t, b.Beat(t.Context(), lease), ErrNotYours)
				verdict := b.settle(t, a, late)
				require.False(t, verdict.Landed)
				require.Equal(t, attempt.StateCANCELLED, verdict.Attempt.State)
				require.Equal(t, job.StateRUNNING, verdict.Job.State)
				require.Nil(t, verdict.Job.Result)
				require.Equal(t, attempt.StateRUNNING, b.attempt(t, second.ID).State)
				require.Equal(t, events, b.eventTypes(t, j.ID))

				require.True(t, b.settle(t, second, answer("b")).Landed)
				require.Equal(t, second.ID, *b.job(t, j.ID).CompletedByID)
				require.Empty(t, b.find(t, "canary-2f60"))
			})
		})
	}
}

// A cancellation that lost to the completion was answered as if it had taken place, and nobody was told. Shape of
// dbos-inc/dbos-transact-py issue 767 and apache/datafusion-ballista issue 1493.
func TestBugReport3CancelLosesToACompletion(t *testing.T) {
	t.Parallel()

	t.Run("InTheMiddleOfTheClaim", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			p := b.withPause(t)
			j, a := b.createWithHook(t, "single")
			b.running(t, a)
			var verdict Verdict
			var ofAttempt, ofJob error
			p.meanwhile(t, func() (err error) {
				verdict, err = b.Settle(t.Context(), a.ID, answer("a"))
				return err
			}, func() error {
				_, ofAttempt = b.CancelAttempt(b.ann, a.ID, nil)
				return nil
			}, func() error {
				_, ofJob = b.CancelJob(b.ann, j.ID, nil)
				return nil
			})
			require.True(t, verdict.Landed)
			var finished *AttemptFinishedError
			require.ErrorAs(t, ofAttempt, &finished)
			require.Equal(t, attempt.StateSUCCEEDED, finished.Attempt.State)
			require.Equal(t, a.ID, *finished.Job.CompletedByID)
			var done *JobFinishedError
			require.ErrorAs(t, ofJob, &done)
			require.Equal(t, job.StateSUCCEEDED, done.Job.State)
			require.Equal(t, a.ID, *done.Job.CompletedByID)
			require.JSONEq(t, `{"answer":"a"}`, string(b.job(t, j.ID).Result))
			b.replay(t, j.ID)
		})
	})

	t.Run("TellsWhoWonWhenItComesLate", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j, winner, loser := b.race(t)
			b.settle(t, winner, answer("a"))
			before := b.eventTypes(t, j.ID)
			for _, a := range []string{winner.ID, loser.ID} {
				_, err := b.CancelAttempt(b.ann, a, nil)
				var finished *AttemptFinishedError
				require.ErrorAs(t, err, &finished)
				require.Equal(t, a, finished.Attempt.ID)
				require.Equal(t, winner.ID, *finished.Job.CompletedByID)
				require.Equal(t, winner.ID, finished.Job.QueryCompletedBy().OnlyX(b.ann).ID)
			}
			_, err := b.CancelJob(b.ann, j.ID, nil)
			var done *JobFinishedError
			require.ErrorAs(t, err, &done)
			require.Equal(t, before, b.eventTypes(t, j.ID))
		})
	})

	t.Run("EitherWinsOrIsToldWhoDid", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for range 8 {
				j := b.create(t, "plain")
				a := b.last(t, j.ID)
				b.running(t, a)
				got := inParallel(2, func(i int) (bool, error) {
					if i == 0 {
						v, err := b.Settle(t.Context(), a.ID, answer("a"))
						return v.Landed, err
					}
					_, err := b.CancelJob(b.ann, j.ID, nil)
					return err == nil, nil
				})
				require.NoError(t, got[0].err)
				require.NotEqual(t, got[0].value, got[1].value, "exactly one of them")
				j = b.job(t, j.ID)
				require.Equal(t, 2, j.Version)
				require.Equal(t, got[0].value, j.State == job.StateSUCCEEDED)
				require.Equal(t, got[0].value, j.Result != nil)
				b.replay(t, j.ID)
			}
		})
	})
}

// A second enqueue of a unique job replaced the arguments of the one that was already being worked on. Shape of
// oban-bg/oban issue 635.
func TestBugReport4DuplicateEnqueueReplacesTheInput(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		c, err := b.Create(b.ann, input("k", `{"text":"a","n":[1,2]}`))
		require.NoError(t, err)
		a := b.last(t, c.Job.ID)
		held := b.sent(t, a) // it is being worked on
		for _, other := range []string{`{"text":"b"}`, `{"text":"a","n":[2,1]}`, `{"text":"a","n":[1,2],"more":{}}`} {
			_, err = b.Create(b.ann, input("k", other))
			var conflict *IdempotencyConflictError
			require.ErrorAs(t, err, &conflict)
		}
		again, err := b.Create(b.ann, input("k", ` {"n" : [1.0, 2e0] , "text":"\u0061"}`))
		require.NoError(t, err)
		require.True(t, again.Replayed)
		require.JSONEq(t, `{"text":"a","n":[1,2]}`, string(b.job(t, c.Job.ID).Input))
		require.JSONEq(t, `{"text":"a","n":[1,2]}`, string(held.Job.Input))
		require.Equal(t, again.Job.UpdatedAt, b.job(t, c.Job.ID).UpdatedAt)
		require.Equal(t, []int64{*a.QueueEntry}, b.queue.of(a.ID), "no second entry")
	})
}

// Of the same calls at the same time each looked, found nothing and ran. Shape of jcagarcia/grape-idempotency issue 10
// and mastodon/mastodon pull request 37879.
func TestBugReport5ManyCallsWithOneKeyAllRun(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		const calls = 200
		other := b.restarted(allTasks(t)) // a second process: nothing may depend on memory
		got := inParallel(calls, func(i int) (Created, error) {
			s := b.Service
			if i%2 == 1 {
				s = other.Service
			}
			return s.Create(b.ann, input("k", `{"text":"a"}`))
		})
		first, ids := 0, map[string]bool{}
		for _, r := range got {
			require.NoError(t, r.err)
			ids[r.value.Job.ID] = true
			if !r.value.Replayed {
				first++
			}
		}
		require.Equal(t, 1, first)
		require.Len(t, ids, 1)
		require.Equal(t, 1, b.store.Client().Job.Query().CountX(b.sys))
		require.Equal(t, 1, b.store.Client().Attempt.Query().CountX(b.sys))
		require.Equal(t, 2, b.store.Client().JobEvent.Query().CountX(b.sys))
		require.Equal(t, 1, b.queue.len())
	})
}

// pause holds the transaction that ends a job, when it has written everything and not yet committed.
type pause struct {
	*fakeCallbacks

	b              *testBundle
	inside, commit chan struct{}
}

// withPause is the bundle's service with a pause in what ends a job with a callback URL.
func (b *testBundle) withPause(t *testing.T) *pause {
	t.Helper()
	p := &pause{fakeCallbacks: b.withCallbacks(t), b: b, inside: make(chan struct{}), commit: make(chan struct{})}
	b.callbacks = p
	return p
}

func (p *pause) Enqueue(ctx context.Context, tx *store.Tx, c Completion) error {
	p.inside <- struct{}{}
	<-p.commit
	return p.fakeCallbacks.Enqueue(ctx, tx, c)
}

// meanwhile runs what ends the job, and the others while its transaction is open: it commits once every other one waits
// for it.
func (p *pause) meanwhile(t *testing.T, ends func() error, others ...func() error) {
	t.Helper()
	done := make(chan error, 1+len(others))
	go func() { done <- ends() }()
	<-p.inside
	before := p.b.store.DB().Stats().WaitCount
	for _, f := range others {
		go func() { done <- f() }()
	}
	await.Until(t, "the others wait for the transaction", func() bool {
		if !p.b.store.Postgres() { // the transaction has the only connection
			return p.b.store.DB().Stats().WaitCount-before >= int64(len(others))
		}
		waiting := p.b.texts(t, `SELECT pid FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT granted AND datname = current_database()`)
		return len(waiting) == len(others)
	})
	close(p.commit)
	for range 1 + len(others) {
		require.NoError(t, <-done)
	}
}
