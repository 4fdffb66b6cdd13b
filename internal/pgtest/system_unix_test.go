//go:build unix && !solaris && !illumos && !aix

package pgtest

import (
	"os/user"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
)

func TestRestartWaitsForOldProcessesThatHoldTheSharedMemory(t *testing.T) {
	t.Parallel()
	cluster := StartFor(t)
	conn, err := pgx.Connect(t.Context(), cluster.AdminDSN())
	require.NoError(t, err)
	backend := int(conn.PgConn().PID())
	require.NoError(t, syscall.Kill(backend, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(backend, syscall.SIGCONT) })
	require.NoError(t, cluster.Kill())

	restarted := make(chan error, 1)
	go func() { restarted <- cluster.Restart(t.Context()) }()
	await.Until(t, "the restart waits for the shared memory", func() bool {
		return strings.Contains(cluster.place.logTail(), "shared memory block")
	})
	require.NoError(t, syscall.Kill(backend, syscall.SIGCONT))
	require.NoError(t, <-restarted)
}

func TestUnprivileged(t *testing.T) {
	t.Parallel()
	users := map[string]*user.User{
		"postgres": {Uid: "101", Gid: "104"},
		"nobody":   {Uid: "65534", Gid: "65533"},
		"root":     {Uid: "0", Gid: "0"},
	}
	lookup := func(name string) (*user.User, error) {
		if found, ok := users[name]; ok {
			return found, nil
		}
		return nil, user.UnknownUserError(name)
	}
	for _, row := range []struct{ names, want string }{
		{"postgres nobody", "postgres"},
		{"absent nobody", "nobody"},
		{"root nobody", "nobody"},
	} {
		t.Run(row.names, func(t *testing.T) {
			t.Parallel()
			got, err := unprivileged(lookup, strings.Fields(row.names)...)
			require.NoError(t, err)
			require.Equal(t, row.want, got.name)
		})
	}
	t.Run("nobody at all", func(t *testing.T) {
		t.Parallel()
		_, err := unprivileged(lookup, "absent", "root")
		require.ErrorContains(t, err, "add one of absent, root")
	})
}
