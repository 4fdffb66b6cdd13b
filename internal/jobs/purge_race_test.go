package jobs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/store"
)

func TestPurgeRaces(t *testing.T) {
	t.Parallel()

	t.Run("WithReplaysOfTheSameKey", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for range 20 {
				old := b.cancelledJob(t)
				b.quiet(t, old.ID, 2*keep)
				got := inParallel(6, func(i int) (Created, error) {
					if i == 0 {
						_, err := b.Purge(t.Context(), keep, 100)
						return Created{}, err
					}
					return b.Create(b.ann, CreateInput{IdempotencyKey: &old.IdempotencyKey, Task: old.Task, Input: old.Input})
				})
				created := map[string]int{}
				for i, r := range got {
					require.NoError(t, r.err)
					if i > 0 && !r.value.Replayed {
						created[r.value.Job.ID]++
					}
				}
				require.LessOrEqual(t, len(created), 1)
				ids := b.store.Client().Job.Query().Where(job.IdempotencyKey(old.IdempotencyKey)).IDsX(b.sys)
				require.LessOrEqual(t, len(ids), 1)
				for _, id := range ids {
					require.True(t, id == old.ID || created[id] == 1)
				}
			}
		})
	})

	// PostgreSQL only from here: SQLite has one transaction at a time.
	create := func(b *testBundle, old *ent.Job) <-chan result[Created] {
		done := make(chan result[Created], 1)
		go func() {
			c, err := b.Create(b.ann, CreateInput{IdempotencyKey: &old.IdempotencyKey, Task: old.Task, Input: old.Input})
			done <- result[Created]{c, err}
		}()
		return done
	}
	isNew := func(t *testing.T, b *testBundle, old *ent.Job, r result[Created]) {
		t.Helper()
		require.NoError(t, r.err)
		require.False(t, r.value.Replayed)
		require.NotEqual(t, old.ID, r.value.Job.ID)
		require.Equal(t, []string{r.value.Job.ID},
			b.store.Client().Job.Query().Where(job.IdempotencyKey(old.IdempotencyKey)).IDsX(b.sys))
	}

	t.Run("CreateWaitsForAPurgeUnderWay", func(t *testing.T) {
		t.Parallel()
		b := setup(t, databases.DSN(t))
		old := b.cancelledJob(t)
		b.quiet(t, old.ID, 2*keep)
		var done <-chan result[Created]
		require.NoError(t, b.store.Tx(b.sys, func(tx *store.Tx) error {
			n, err := b.purge(b.sys, tx, keep, []string{old.ID})
			require.Equal(t, 1, n)
			done = create(b, old)
			b.someoneWaits(t, "transactionid")
			return err
		}))
		isNew(t, b, old, <-done)
	})

	t.Run("CreateTriesAgainWhenTheJobThatItMetIsGone", func(t *testing.T) {
		t.Parallel()
		b := setup(t, databases.DSN(t))
		old := b.cancelledJob(t)
		b.quiet(t, old.ID, 2*keep)
		// The insert meets the old job, and stands still before the old job is read.
		require.NoError(t, b.exec(t, `CREATE FUNCTION stand_still() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$`))
		require.NoError(t, b.exec(t, `CREATE TRIGGER stand_still AFTER INSERT ON jobs FOR EACH STATEMENT EXECUTE FUNCTION stand_still()`))
		var done <-chan result[Created]
		require.NoError(t, b.store.Tx(b.sys, func(tx *store.Tx) error {
			_, err := tx.SQL.ExecContext(t.Context(), "SELECT pg_advisory_xact_lock(4711)")
			require.NoError(t, err)
			done = create(b, old)
			b.someoneWaits(t, "advisory")
			require.Equal(t, 1, b.purgeAll(t, 100))
			return nil
		}))
		isNew(t, b, old, <-done)
	})

	t.Run("LeavesWhatAnotherTransactionHolds", func(t *testing.T) {
		t.Parallel()
		b := setup(t, databases.DSN(t))
		held, free := b.failedJob(t), b.failedJob(t)
		b.quiet(t, held.ID, 2*keep)
		b.quiet(t, free.ID, 2*keep)
		require.NoError(t, b.change(b.ann, viewerOf(b.ann), held.ID, func(*change) error {
			ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
			defer cancel()
			n, err := b.Purge(ctx, keep, 100)
			require.NoError(t, err, "it does not wait")
			require.Equal(t, 1, n)
			return nil
		}))
		require.Equal(t, []string{held.ID}, b.store.Client().Job.Query().IDsX(b.sys))
		require.Equal(t, 1, b.purgeAll(t, 100), "nothing was changed: it goes the next time")
	})

	t.Run("AReopeningWaitsAndFindsNothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, databases.DSN(t))
		j := b.failedJob(t)
		b.quiet(t, j.ID, 2*keep)
		done := make(chan error, 1)
		require.NoError(t, b.store.Tx(b.sys, func(tx *store.Tx) error {
			n, err := b.purge(b.sys, tx, keep, []string{j.ID})
			require.Equal(t, 1, n)
			go func() {
				_, err := b.StartAttempt(b.ann, j.ID, nil)
				done <- err
			}()
			b.someoneWaits(t, "transactionid")
			return err
		}))
		require.ErrorIs(t, <-done, ErrNotFound)
	})
}

// TestPurgeFindsJobsByTheirIndex holds the plan. On PostgreSQL 15 with a million finished jobs, of which 2,000 are outdated
// and SUCCEEDED and none in another state, both before and after ANALYZE:
//
//	Limit (actual time=0.068..0.147 rows=100)
//	  InitPlan 1 (returns $0)
//	  ->  Nested Loop Anti Join (actual time=0.067..0.138 rows=100)
//	        ->  Index Scan using job_finished on jobs (actual time=0.054..0.101 rows=100)
//	              Index Cond: (((state)::text = 'SUCCEEDED'::text) AND (updated_at < $0))
//	        ->  Materialize (actual time=0.000..0.000 rows=0 loops=100)
//	              ->  Index Scan using attempt_state_created_at on attempts (actual time=0.010..0.010 rows=0)
//	                    Index Cond: ((state)::text = ANY ('{STARTING,RUNNING,UNKNOWN}'::text[]))
//
// and 3 to 79 buffers in 0.04 to 0.26 ms for a state of which nothing is outdated.
func TestPurgeFindsJobsByTheirIndex(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		name, explain := dialect.SQLite, "EXPLAIN QUERY PLAN "
		want := []string{"job_finished (state=? AND updated_at<?)", "attempt_job_id_number (job_id=?)"}
		if b.store.Postgres() {
			name, explain = dialect.Postgres, "EXPLAIN "
			want = []string{"using job_finished on jobs", "(updated_at < $0))", "Anti Join"}
		}
		sel := entsql.Dialect(name).Select(job.FieldID).From(entsql.Table(job.Table))
		b.oldest(job.StateFAILED, keep)(sel)
		query, args := sel.Limit(100).Query()
		for i := len(args); i > 0; i-- {
			query = strings.Replace(query, fmt.Sprintf("$%d", i), "?", 1)
		}
		for _, a := range args {
			query = strings.Replace(query, "?", fmt.Sprintf("'%v'", a), 1)
		}
		if b.store.Postgres() {
			b.copies(t, b.succeeded(t).ID, 5000)
			for _, table := range []string{"jobs", "attempts"} {
				require.NoError(t, b.exec(t, "ANALYZE "+table))
			}
		}
		plan := strings.Join(b.texts(t, explain+query), "\n")
		for _, w := range want {
			require.Contains(t, plan, w)
		}
	})
}

// someoneWaits returns once another transaction waits for a lock of that kind.
func (b *testBundle) someoneWaits(t *testing.T, kind string) {
	t.Helper()
	await.Until(t, "someone waits for a lock: "+kind, func() bool {
		return b.texts(t, `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE NOT granted AND locktype = '`+kind+`' AND datname = current_database()`)[0] != "0"
	})
}
