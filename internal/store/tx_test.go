package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/store"
)

func TestTx(t *testing.T) {
	t.Parallel()

	rename := func(t *testing.T, tx *store.Tx, id string) {
		t.Helper()
		require.NoError(t, tx.Job.UpdateOneID(id).SetLastEvent(77).Exec(system(t)))
		require.Equal(t, 77, tx.Job.GetX(system(t), id).LastEvent, "a transaction sees its own changes")
	}

	t.Run("CommitsOnceAndThenTells", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			j := addJob(t, s, "ann", `{}`)
			var told []int
			require.NoError(t, s.Tx(t.Context(), func(tx *store.Tx) error {
				rename(t, tx, j.ID)
				tx.AfterCommit(func() { told = append(told, s.Client().Job.GetX(system(t), j.ID).LastEvent) })
				tx.AfterCommit(func() { told = append(told, 2) })
				require.Empty(t, told)
				return nil
			}))
			require.Equal(t, []int{77, 2}, told, "in order, and what is told is there")
		})
	})

	t.Run("RollsBackOnError", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			j := addJob(t, s, "ann", `{}`)
			err := s.Tx(t.Context(), func(tx *store.Tx) error {
				rename(t, tx, j.ID)
				tx.AfterCommit(func() { t.Error("told of what did not happen") })
				return errBroken
			})
			require.Equal(t, errBroken, err, "as it is")
			require.Equal(t, 1, s.Client().Job.GetX(system(t), j.ID).LastEvent)
		})
	})

	t.Run("RollsBackOnPanic", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			j := addJob(t, s, "ann", `{}`)
			require.PanicsWithError(t, errBroken.Error(), func() {
				_ = s.Tx(t.Context(), func(tx *store.Tx) error {
					rename(t, tx, j.ID)
					panic(errBroken)
				})
			})
			require.Equal(t, 1, s.Client().Job.GetX(system(t), j.ID).LastEvent)
			require.Zero(t, s.DB().Stats().InUse, "the connection is given back")
		})
	})

	t.Run("RollsBackWhenTheCallerIsGone", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			j := addJob(t, s, "ann", `{}`)
			ctx, cancel := context.WithCancel(t.Context())
			err := s.Tx(ctx, func(tx *store.Tx) error {
				rename(t, tx, j.ID)
				cancel()
				return nil
			})
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, 1, s.Client().Job.GetX(system(t), j.ID).LastEvent)
		})
	})

	t.Run("SaysThatACommitFailed", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			j := addJob(t, s, "ann", `{}`)
			err := s.Tx(t.Context(), func(tx *store.Tx) error {
				tx.AfterCommit(func() { t.Error("told of what did not happen") })
				statements := []string{"PRAGMA defer_foreign_keys = ON"}
				if s.Postgres() {
					statements = []string{
						"ALTER TABLE jobs ALTER CONSTRAINT jobs_owners_jobs DEFERRABLE INITIALLY DEFERRED",
					}
				}
				for _, statement := range append(statements, "UPDATE jobs SET owner_id = 'own_nobody'") {
					if _, err := tx.SQL.ExecContext(t.Context(), statement); err != nil {
						return err
					}
				}
				return nil
			})
			var commit *store.CommitError
			require.ErrorAs(t, err, &commit)
			require.Error(t, commit.Unwrap())
			// The store works on.
			require.NoError(t, s.Tx(t.Context(), func(tx *store.Tx) error {
				return tx.Job.UpdateOneID(j.ID).SetLastEvent(3).Exec(system(t))
			}))
			got := s.Client().Job.GetX(system(t), j.ID)
			require.Equal(t, 3, got.LastEvent)
			require.Equal(t, j.OwnerID, got.OwnerID)
		})
	})

	t.Run("LetsEntitiesOut", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			made := addJob(t, s, "ann", `{}`)
			for _, fail := range []bool{false, true} {
				var j *ent.Job
				err := s.Tx(t.Context(), func(tx *store.Tx) error {
					j = tx.Job.GetX(system(t), made.ID)
					if fail {
						return errBroken
					}
					return nil
				})
				require.Equal(t, fail, err != nil)
				require.Equal(t, 1, j.QueryAttempts().CountX(system(t)))
				require.NoError(t, j.Update().SetLastEvent(5).Exec(system(t)))
			}
		})
	})

	t.Run("HoldsTheJobsRow", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			j := addJob(t, s, "ann", `{}`)
			const each, workers = 10, 4
			done := make(chan error, workers)
			for range workers {
				go func() {
					var err error
					for range each {
						err = s.Tx(t.Context(), func(tx *store.Tx) error {
							j, err := tx.LockJob(system(t), j.ID)
							if err != nil {
								return err
							}
							return tx.Job.UpdateOneID(j.ID).SetLastEvent(j.LastEvent + 1).Exec(system(t))
						})
						if err != nil {
							break
						}
					}
					done <- err
				}()
			}
			for range workers {
				require.NoError(t, <-done)
			}
			require.Equal(t, 1+each*workers, s.Client().Job.GetX(system(t), j.ID).LastEvent)
			err := s.Tx(t.Context(), func(tx *store.Tx) error { _, err := tx.LockJob(system(t), "job_nobody"); return err })
			require.True(t, ent.IsNotFound(err))
		})
	})
}
