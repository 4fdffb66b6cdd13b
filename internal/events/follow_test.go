package events

import (
	"context"
	"iter"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/seed"
	"github.com/docket-gateway/docket/internal/viewer"
)

var (
	alice   = viewer.Viewer{Issuer: "dev", Subject: "alice"}
	mallory = viewer.Viewer{Issuer: "dev", Subject: "mallory"}
)

type bundle struct {
	*seed.Seed
	hub    *Hub
	follow *Follower
}

func setup(t *testing.T) *bundle { return over(seed.SQLite(t)) }

// onBoth runs a test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, b *bundle)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, setup(t))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, over(seedPostgreSQL(t)))
	})
}

func seedPostgreSQL(t *testing.T) *seed.Seed { return seedAt(t, databases.DSN(t)) }

func seedAt(t *testing.T, dsn string) *seed.Seed { return seed.Open(t, dsn) }

// over has no poll: what a test sees came by a notice.
func over(s *seed.Seed) *bundle {
	b := &bundle{Seed: s, hub: NewHub()}
	b.Changed = b.hub.JobChanged
	b.follow = &Follower{Client: b.Store.Client(), Hub: b.hub, Batch: 3}
	return b
}

// pull reads in the background of nothing: each next is one step of the follower.
func pull[T any](t *testing.T, seq iter.Seq2[T, error]) (next func() (T, error, bool)) {
	next, stop := iter.Pull2(seq)
	t.Cleanup(stop)
	return next
}

func as(t *testing.T, v viewer.Viewer) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	t.Cleanup(cancel)
	return viewer.NewContext(ctx, v)
}

func TestEventsDeliversWhatIsThereThenWhatComes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bundle) {
		j := b.Job(t, alice, "k")
		for range 9 { // several batches
			b.Log(t, j.ID, "NOTE")
		}
		next := pull(t, b.follow.Events(as(t, alice), j.ID, 0))
		for n := 1; n <= 10; n++ {
			e, err, ok := next()
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, n, e.Number)
		}
		go b.Log(t, j.ID, "LATE")
		e, err, ok := next()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 11, e.Number)
		require.Equal(t, "LATE", e.Type)
	})
}

func TestEventsResumesAfterANumber(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	a := b.Attempt(t, j.ID)
	b.Move(t, a.ID, attempt.StateRUNNING, "")
	b.Finish(t, j.ID, job.StateCANCELLED, "")
	var got []int
	for e, err := range b.follow.Events(as(t, alice), j.ID, 2) {
		require.NoError(t, err)
		got = append(got, e.Number)
	}
	require.Equal(t, []int{3, 4}, got)
}

func TestANumberBeyondTheLogIsAnError(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bundle) {
		j := b.Job(t, alice, "k")
		_, err, _ := pull(t, b.follow.Events(as(t, alice), j.ID, 2))()
		var beyond *BeyondError
		require.ErrorAs(t, err, &beyond)
		require.Equal(t, 1, beyond.Last)

		// A backup is restored below a reader.
		b.Log(t, j.ID, "NOTE")
		next := pull(t, b.follow.Events(as(t, alice), j.ID, 1))
		_, err, _ = next()
		require.NoError(t, err)
		_, err = b.Store.DB().ExecContext(t.Context(), "UPDATE jobs SET last_event = 1 WHERE id = '"+j.ID+"'")
		require.NoError(t, err)
		b.hub.JobChanged(j.ID)
		_, err, _ = next()
		require.ErrorAs(t, err, &beyond)
	})
}

func TestEventsEndsOnlyWithTheLastEventOfAFinalJob(t *testing.T) {
	t.Parallel()
	for _, final := range []job.State{job.StateSUCCEEDED, job.StateFAILED, job.StateCANCELLED} {
		t.Run(string(final), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			j := b.Job(t, alice, "k")
			a := b.Attempt(t, j.ID)
			next := pull(t, b.follow.Events(as(t, alice), j.ID, 0))
			for range 2 {
				_, err, ok := next()
				require.NoError(t, err)
				require.True(t, ok)
			}
			b.Finish(t, j.ID, final, a.ID)
			// The job is final already, and what else was committed still comes.
			b.Log(t, j.ID, "RESULT_DROPPED")
			for _, kind := range []string{"JOB_STATE", "RESULT_DROPPED"} {
				e, err, ok := next()
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, kind, e.Type)
			}
			_, err, ok := next()
			require.NoError(t, err)
			require.False(t, ok)
		})
	}
}

func TestEventsFollowsAJobThatWasOpenedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	b.Finish(t, j.ID, job.StateFAILED, "")
	b.Finish(t, j.ID, job.StateQUEUED, "")
	next := pull(t, b.follow.Events(as(t, alice), j.ID, 0))
	for range 3 {
		_, err, ok := next()
		require.NoError(t, err)
		require.True(t, ok)
	}
	go b.Finish(t, j.ID, job.StateCANCELLED, "")
	e, err, ok := next()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, string(job.StateCANCELLED), *e.To)
	_, _, ok = next()
	require.False(t, ok)
}

func TestNothingIsLostBetweenReadingAndWaiting(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bundle) {
		j := b.Job(t, alice, "k")
		const n = 200
		go func() {
			for i := range n {
				b.Log(t, j.ID, strconv.Itoa(i))
			}
			b.Finish(t, j.ID, job.StateCANCELLED, "")
		}()
		number := 0
		for e, err := range b.follow.Events(as(t, alice), j.ID, 0) {
			require.NoError(t, err)
			number++
			require.Equal(t, number, e.Number)
		}
		require.Equal(t, n+2, number)
	})
}

func TestAStrangersJobIsNotThere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bundle) {
		j := b.Job(t, alice, "k")
		b.Attempt(t, j.ID)
		_, err, _ := pull(t, b.follow.Events(as(t, mallory), j.ID, 0))()
		require.ErrorIs(t, err, ErrNotFound)
		_, err, _ = pull(t, b.follow.Attempts(as(t, mallory), j.ID))()
		require.ErrorIs(t, err, ErrNotFound)
	})
}

func TestAGapIsAnError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	sys := viewer.NewSystemContext(t.Context())
	require.NoError(t, b.Store.Client().Job.Update().Where(job.ID(j.ID)).SetLastEvent(3).Exec(sys))
	next := pull(t, b.follow.Events(as(t, alice), j.ID, 0))
	_, err, _ := next()
	require.NoError(t, err)
	_, err, _ = next()
	require.ErrorContains(t, err, "missing")
}

func TestAHoleIsAnError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	b.Log(t, j.ID, "NOTE")
	b.Log(t, j.ID, "NOTE")
	_, err := b.Store.DB().ExecContext(t.Context(), "DELETE FROM job_events WHERE number = 2")
	require.NoError(t, err)
	_, err, _ = pull(t, b.follow.Events(as(t, alice), j.ID, 0))()
	require.ErrorContains(t, err, "event 2 is missing")
}

func TestAttemptsDeliversStatesThenEveryChange(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bundle) {
		j := b.Job(t, alice, "k")
		first := b.Attempt(t, j.ID)
		b.Move(t, first.ID, attempt.StateFAILED, `{"code":"JAMMED","message":"jam"}`)
		second := b.Attempt(t, j.ID)

		next := pull(t, b.follow.Attempts(as(t, alice), j.ID))
		expect := func(id string, state attempt.State, code string) *ent.Attempt {
			t.Helper()
			a, err, ok := next()
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, id, a.ID)
			require.Equal(t, state, a.State)
			if code == "" {
				require.Nil(t, a.ErrorCode)
			} else {
				require.Equal(t, code, *a.ErrorCode)
			}
			return a
		}
		expect(first.ID, attempt.StateFAILED, "JAMMED")
		expect(second.ID, attempt.StateSTARTING, "")

		// Three changes before the reader looks again are three attempts.
		b.Move(t, second.ID, attempt.StateRUNNING, "")
		b.Move(t, second.ID, attempt.StateUNKNOWN, `{"code":"IDLE_TIMEOUT","message":"silence"}`)
		b.Move(t, second.ID, attempt.StateCANCELLED, `{"code":"CANCELLED","message":"by hand"}`)
		b.Finish(t, j.ID, job.StateCANCELLED, "")
		running := expect(second.ID, attempt.StateRUNNING, "")
		require.Nil(t, running.FinishedAt)
		require.NotNil(t, running.AcknowledgedAt)
		require.Nil(t, expect(second.ID, attempt.StateUNKNOWN, "IDLE_TIMEOUT").FinishedAt)
		require.NotNil(t, expect(second.ID, attempt.StateCANCELLED, "CANCELLED").FinishedAt)
		_, err, ok := next()
		require.NoError(t, err)
		require.False(t, ok)
	})
}

func TestAnAttemptIsAsOfItsEventWhenItIsCreated(t *testing.T) {
	t.Parallel()
	b := setup(t)
	j := b.Job(t, alice, "k")
	next := pull(t, b.follow.Attempts(as(t, alice), j.ID))
	done := make(chan struct{})
	go func() {
		defer close(done)
		a := b.Attempt(t, j.ID)
		b.Move(t, a.ID, attempt.StateRUNNING, "")
	}()
	<-done
	// The snapshot is taken at the first step, which is after both.
	a, err, _ := next()
	require.NoError(t, err)
	require.Equal(t, attempt.StateRUNNING, a.State)
}

func TestEndingTheContextEndsTheFollower(t *testing.T) { //nolint:paralleltest // it counts goroutines
	b := setup(t)
	j := b.Job(t, alice, "k")
	before := goleak.IgnoreCurrent()
	for range 20 {
		ctx, cancel := context.WithCancel(as(t, alice))
		ended := make(chan error, 1)
		go func() {
			var last error
			for _, err := range b.follow.Events(ctx, j.ID, 0) {
				last = err
			}
			ended <- last
		}()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	require.Zero(t, b.hub.Watched())
	goleak.VerifyNone(t, before)
}

func TestARemovedJobIsNotThereAnyMore(t *testing.T) {
	t.Parallel()
	// remove takes the rows away as retention does.
	remove := func(t *testing.T, b *bundle, jobID string) {
		t.Helper()
		for _, statement := range []string{
			"DELETE FROM job_events WHERE job_id = ?", "DELETE FROM attempts WHERE job_id = ?", "DELETE FROM jobs WHERE id = ?",
		} {
			_, err := b.Store.DB().ExecContext(t.Context(), statement, jobID)
			require.NoError(t, err)
		}
	}

	t.Run("ToWhoReadsItsEvents", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		j := b.Job(t, alice, "k")
		for range 9 { // several batches
			b.Log(t, j.ID, "NOTE")
		}
		b.Finish(t, j.ID, job.StateCANCELLED, "")
		next := pull(t, b.follow.Events(as(t, alice), j.ID, 0))
		for range b.follow.Batch {
			_, err, _ := next()
			require.NoError(t, err)
		}
		remove(t, b, j.ID)
		_, err, ok := next()
		require.True(t, ok)
		require.ErrorIs(t, err, ErrNotFound)
		_, _, ok = next()
		require.False(t, ok)
	})

	t.Run("ToWhoReadsItsAttempts", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		j := b.Job(t, alice, "k")
		a := b.Attempt(t, j.ID)
		b.Move(t, a.ID, attempt.StateCANCELLED, "")
		b.Finish(t, j.ID, job.StateCANCELLED, "")
		next := pull(t, b.follow.Attempts(as(t, alice), j.ID))
		_, err, _ := next()
		require.NoError(t, err)
		remove(t, b, j.ID)
		_, err, ok := next()
		require.True(t, ok)
		require.ErrorIs(t, err, ErrNotFound)
		_, _, ok = next()
		require.False(t, ok)
	})
}
