package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/pgtest"
	"github.com/docket-gateway/docket/internal/store"
)

func TestDirect(t *testing.T) {
	t.Parallel()
	address := databases.DSN(t)

	t.Run("IsTheStoresOwnPoolUnlessThereIsAnother", func(t *testing.T) {
		t.Parallel()
		s := open(t, address)
		require.Same(t, s.Pool(), s.Direct())
		s = open(t, address, store.WithDirect(pgtest.Named(t, address, "direct")))
		require.NotSame(t, s.Pool(), s.Direct())
		var name string
		require.NoError(t, s.Direct().QueryRow(t.Context(), "SHOW application_name").Scan(&name))
		require.Equal(t, "direct", name)
	})

	t.Run("IsMissedAtOnce", func(t *testing.T) {
		t.Parallel()
		_, err := store.Open(t.Context(), address, store.WithDirect("postgres://u:hunter2@127.0.0.1:1/x"))
		require.ErrorContains(t, err, "the direct connection")
		require.NotContains(t, err.Error(), "hunter2")
	})

	// A lock of a session is of no worth on a connection that a pooler gives to the next one.
	t.Run("HoldsTheSchemasLock", func(t *testing.T) {
		t.Parallel()
		address := emptyPostgres(t)
		s := open(t, pgtest.Named(t, address, "pooled"), store.WithDirect(pgtest.Named(t, address, "direct")))
		holder, err := open(t, address).Pool().Acquire(t.Context())
		require.NoError(t, err)
		defer holder.Release()
		const lock = 0x646f636b6574
		_, err = holder.Exec(t.Context(), "SELECT pg_advisory_lock($1)", int64(lock))
		require.NoError(t, err)
		migrated := make(chan error, 1)
		go func() { migrated <- s.Migrate(t.Context()) }()
		await.Until(t, "the migration waits for the lock, directly", func() bool {
			var waiting []string
			err := holder.QueryRow(t.Context(), `SELECT coalesce(array_agg(application_name), '{}') FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event = 'advisory'`).Scan(&waiting)
			return err == nil && len(waiting) == 1 && waiting[0] == "direct"
		})
		_, err = holder.Exec(t.Context(), "SELECT pg_advisory_unlock($1)", int64(lock))
		require.NoError(t, err)
		require.NoError(t, <-migrated)
	})
}
