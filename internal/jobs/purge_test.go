package jobs

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/ent/job"
	"github.com/docket-gateway/docket/internal/store"
)

// keep is the retention of these tests.
const keep = time.Hour

func TestPurge(t *testing.T) {
	t.Parallel()

	t.Run("RemovesOutdatedFinishedJobsAndNothingElse", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			gone := []*ent.Job{b.succeeded(t), b.failedJob(t), b.cancelledJob(t)}
			unknown, _ := b.unknown(t, "plain")
			waiting := b.create(t, "plain")
			_, err := b.CancelAttempt(b.ann, b.last(t, waiting.ID).ID, nil)
			require.NoError(t, err)
			running, _, _ := b.race(t)
			for _, j := range append([]*ent.Job{unknown, waiting, running, b.create(t, "plain")}, gone...) {
				b.quiet(t, j.ID, keep+time.Minute)
			}
			for _, j := range []*ent.Job{b.succeeded(t), b.failedJob(t), b.cancelledJob(t)} {
				b.quiet(t, j.ID, keep-time.Minute)
			}
			b.riverEntry(t, b.last(t, gone[0].ID).ID)
			want := b.everything(t)
			for table, rows := range want {
				for _, j := range gone {
					rows = without(rows, j.ID)
				}
				want[table] = rows
			}

			require.Equal(t, 3, b.purgeAll(t, 100))
			require.Equal(t, want, b.everything(t))
			require.Zero(t, b.purgeAll(t, 100))

			for _, j := range gone {
				c, err := b.Create(b.ann, CreateInput{IdempotencyKey: &j.IdempotencyKey, Task: j.Task, Input: j.Input})
				require.NoError(t, err)
				require.False(t, c.Replayed, "the key is free")
				require.NotEqual(t, j.ID, c.Job.ID)
			}
		})
	})

	t.Run("ProposesWhatMayGo", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			var ids []string
			for i := range 3 {
				j := b.failedJob(t)
				b.quiet(t, j.ID, keep+time.Duration(i+1)*time.Minute)
				ids = append(ids, j.ID)
			}
			young, open := b.failedJob(t), b.create(t, "plain")
			b.quiet(t, young.ID, keep-time.Second)
			b.quiet(t, open.ID, 100*keep)
			broken := b.failedJob(t)
			b.quiet(t, broken.ID, 100*keep)
			b.reviveAttempt(t, broken.ID)
			got, err := b.outdated(b.sys, keep, 100)
			require.NoError(t, err)
			require.ElementsMatch(t, ids, got)
			got, err = b.outdated(b.sys, keep, 2)
			require.NoError(t, err)
			require.Equal(t, []string{ids[2], ids[1]}, got, "the oldest first")
		})
	})

	t.Run("LooksAgainUnderTheLock", func(t *testing.T) {
		t.Parallel()
		for name, change := range map[string]func(t *testing.T, b *testBundle, id string){
			"re-opened by its owner": func(t *testing.T, b *testBundle, id string) {
				_, err := b.StartAttempt(b.ann, id, nil)
				require.NoError(t, err)
			},
			"state": func(t *testing.T, b *testBundle, id string) {
				require.NoError(t, b.exec(t, "UPDATE jobs SET state = 'WAITING' WHERE id = '"+id+"'"))
			},
			"age":          func(t *testing.T, b *testBundle, id string) { b.quiet(t, id, keep-time.Minute) },
			"open attempt": func(t *testing.T, b *testBundle, id string) { b.reviveAttempt(t, id) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				eachDatabase(t, func(t *testing.T, b *testBundle) {
					changed, same := b.failedJob(t), b.failedJob(t)
					b.quiet(t, changed.ID, 2*keep)
					b.quiet(t, same.ID, 2*keep)
					ids, err := b.outdated(b.sys, keep, 100)
					require.NoError(t, err)
					require.ElementsMatch(t, []string{changed.ID, same.ID}, ids)
					change(t, b, changed.ID)
					want := b.everything(t)
					for table, rows := range want {
						want[table] = without(rows, same.ID)
					}
					require.NoError(t, b.store.Tx(b.sys, func(tx *store.Tx) error {
						n, err := b.purge(b.sys, tx, keep, ids)
						require.Equal(t, 1, n)
						return err
					}))
					require.Equal(t, want, b.everything(t))
				})
			})
		}
	})

	t.Run("NeverRemovesAnOpenAttempt", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for _, s := range openStates {
				j := b.failedJob(t)
				require.NoError(t, b.exec(t, "UPDATE attempts SET state = '"+string(s)+"', finished_at = NULL WHERE job_id = '"+j.ID+"'"))
				b.quiet(t, j.ID, 2*keep)
			}
			want := b.everything(t)
			require.Zero(t, b.purgeAll(t, 100))
			require.Equal(t, want, b.everything(t))
		})
	})

	t.Run("RemovesAThousandInBatchesByManyPurgersAtOnce", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			stays := b.succeeded(t)
			j := b.succeeded(t)
			b.copies(t, j.ID, 999)
			require.NoError(t, b.exec(t, "UPDATE jobs SET updated_at = "+b.store.Now(-2*keep)+" WHERE id <> '"+stays.ID+"'"))
			other := b.restarted(allTasks(t))
			var total atomic.Int64
			got := inParallel(4, func(i int) (int, error) {
				s := []*Service{b.Service, other.Service}[i%2]
				for total.Load() < 1000 {
					n, err := s.Purge(t.Context(), keep, 70)
					if err != nil || n > 70 {
						return n, fmt.Errorf("removed %d: %w", n, err)
					}
					total.Add(int64(n))
				}
				return 0, nil
			})
			for _, r := range got {
				require.NoError(t, r.err)
			}
			require.EqualValues(t, 1000, total.Load(), "each is removed once")
			require.Equal(t, []string{stays.ID}, b.store.Client().Job.Query().IDsX(b.sys))
			require.Len(t, b.attempts(t, stays.ID), b.store.Client().Attempt.Query().CountX(b.sys))
			require.Len(t, b.eventTypes(t, stays.ID), b.store.Client().JobEvent.Query().CountX(b.sys))
		})
	})

	t.Run("LeavesNothingOfTheJobToWorkersAndOwners", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			j := b.failedJob(t)
			a := b.last(t, j.ID)
			b.quiet(t, j.ID, 2*keep)
			require.Equal(t, 1, b.purgeAll(t, 1))
			_, err := b.Settle(t.Context(), a.ID, answer("late"))
			require.ErrorIs(t, err, ErrNotFound)
			_, err = b.Take(t.Context(), a.ID, *a.QueueEntry)
			require.ErrorIs(t, err, ErrNotYours)
			_, err = b.StartAttempt(b.ann, j.ID, nil)
			require.ErrorIs(t, err, ErrNotFound)
			_, err = b.CancelAttempt(b.ann, a.ID, nil)
			require.ErrorIs(t, err, ErrNotFound)
			// Seen before, removed before the lock.
			err = b.change(b.ann, viewerOf(b.ann), j.ID, func(*change) error { return nil })
			require.ErrorIs(t, err, ErrNotFound)
		})
	})

	t.Run("RefusesAnAgeOrBatchOfNothing", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			b.failedJob(t)
			_, err := b.Purge(t.Context(), 0, 100)
			require.Error(t, err)
			_, err = b.Purge(t.Context(), keep, 0)
			require.Error(t, err)
			require.Equal(t, 1, b.store.Client().Job.Query().CountX(b.sys))
		})
	})
}

// succeeded makes a new job with a winner.
func (b *testBundle) succeeded(t *testing.T) *ent.Job {
	t.Helper()
	_, winner, _ := b.race(t)
	v := b.settle(t, winner, answer("a"))
	require.Equal(t, job.StateSUCCEEDED, v.Job.State)
	return v.Job
}

func (b *testBundle) cancelledJob(t *testing.T) *ent.Job {
	t.Helper()
	j, err := b.CancelJob(b.ann, b.create(t, "plain").ID, nil)
	require.NoError(t, err)
	return j
}

// quiet sets the time of a job's last event to d ago, by the database's clock.
func (b *testBundle) quiet(t *testing.T, jobID string, d time.Duration) {
	t.Helper()
	require.NoError(t, b.exec(t, "UPDATE jobs SET updated_at = "+b.store.Now(-d)+" WHERE id = '"+jobID+"'"))
}

// reviveAttempt opens a job's last attempt behind everybody's back.
func (b *testBundle) reviveAttempt(t *testing.T, jobID string) {
	t.Helper()
	require.NoError(t, b.exec(t, "UPDATE attempts SET state = '"+string(attempt.StateUNKNOWN)+
		"', finished_at = NULL WHERE id = '"+b.last(t, jobID).ID+"'"))
}

func (b *testBundle) purgeAll(t *testing.T, batch int) int {
	t.Helper()
	n, err := b.Purge(t.Context(), keep, batch)
	require.NoError(t, err)
	return n
}

// riverEntry is a row of the queue for an attempt.
func (b *testBundle) riverEntry(t *testing.T, attemptID string) {
	t.Helper()
	require.NoError(t, b.exec(t, `INSERT INTO river_job (args, kind, max_attempts) VALUES ('{"attempt_id":"`+attemptID+`"}', 'attempt', 1)`))
	require.Contains(t, b.find(t, attemptID), "river_job")
}

// everything is each row of each table as one text.
func (b *testBundle) everything(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	tables := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if b.store.Postgres() {
		tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	}
	for _, table := range b.texts(t, tables) {
		out[table] = without(b.texts(t, `SELECT * FROM "`+table+`" ORDER BY 1`), "\x00")
	}
	return out
}

// without drops the rows that hold a text.
func without(rows []string, text string) []string {
	out := []string{}
	for _, r := range rows {
		if !strings.Contains(r, text) {
			out = append(out, r)
		}
	}
	return out
}

// copies multiplies a finished job that SUCCEEDED, with all that belongs to it.
func (b *testBundle) copies(t *testing.T, jobID string, n int) {
	t.Helper()
	series := fmt.Sprintf("WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) ", n)
	for _, statement := range []string{
		`INSERT INTO jobs (id, owner_id, idempotency_key, fingerprint, task, task_version, input, target, fallbacks, state, version,
			last_event, created_at, updated_at)
		` + series + `SELECT id || '-' || n, owner_id, idempotency_key || '-' || n, fingerprint, task, task_version, input, target,
			fallbacks, 'FAILED', version, last_event, created_at, updated_at FROM jobs, s WHERE id = '` + jobID + `'`,
		`INSERT INTO attempts (id, job_id, number, target, reason, state, job_version, created_at, due_at, finished_at)
		` + series + `SELECT id || '-' || n, job_id || '-' || n, number, target, reason, state, job_version, created_at, due_at,
			finished_at FROM attempts, s WHERE job_id = '` + jobID + `'`,
		`INSERT INTO job_events (job_id, number, type, at, attempt_id, from_state, to_state)
		` + series + `SELECT job_id || '-' || n, number, type, at, attempt_id || '-' || n, from_state, to_state
			FROM job_events, s WHERE job_id = '` + jobID + `'`,
		`UPDATE jobs SET state = 'SUCCEEDED', result = '{"answer":"a"}',
			completed_by_id = (SELECT id FROM attempts a WHERE a.job_id = jobs.id AND a.state = 'SUCCEEDED')
		WHERE id LIKE '` + jobID + `-%'`,
	} {
		require.NoError(t, b.exec(t, statement))
	}
}
