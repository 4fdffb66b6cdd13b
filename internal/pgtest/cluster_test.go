package pgtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
)

func testContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), startTimeout)
}

func count(t *testing.T, dsn, query string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&n))
	return n
}

func TestCluster(t *testing.T) {
	t.Parallel()

	t.Run("ComesBackWithItsDataAfterAKillAndAfterARestart", func(t *testing.T) {
		t.Parallel()
		cluster := StartFor(t)
		dsn, err := cluster.CreateDatabase(t.Context(), "kept")
		require.NoError(t, err)
		require.NoError(t, execute(t.Context(), dsn, "CREATE TABLE things AS SELECT 1 AS n"))

		conn, err := pgx.Connect(t.Context(), dsn)
		require.NoError(t, err)
		require.NoError(t, cluster.Kill())
		require.Error(t, execute(t.Context(), dsn, "SELECT 1"))
		require.NoError(t, cluster.Kill(), "a second kill does nothing")
		require.NoError(t, cluster.Restart(t.Context()))
		require.Error(t, conn.Ping(t.Context()), "the old connection is lost")
		require.Equal(t, 1, count(t, dsn, "SELECT count(*) FROM things"))

		require.NoError(t, cluster.Restart(t.Context()))
		require.Equal(t, 1, count(t, dsn, "SELECT count(*) FROM things"))
	})

	t.Run("RemovesItsFolderWhenStopped", func(t *testing.T) {
		t.Parallel()
		cluster := StartFor(t)
		require.DirExists(t, cluster.place.data())
		require.NoError(t, cluster.Stop())
		require.NoDirExists(t, cluster.place.folder)
		require.NoFileExists(t, cluster.place.lock.Name())
		require.Error(t, execute(t.Context(), cluster.AdminDSN(), "SELECT 1"))
		require.NoError(t, cluster.Stop(), "a second stop does nothing")
		require.ErrorContains(t, cluster.Restart(t.Context()), "was stopped")
	})

	t.Run("LetsSettingsCountMoreThanItsOwn", func(t *testing.T) {
		t.Parallel()
		cluster := StartFor(t, "fsync=on", "max_connections=20")
		require.Equal(t, 20, count(t, cluster.AdminDSN(), "SELECT current_setting('max_connections')::int"))
		require.Equal(t, 1, count(t, cluster.AdminDSN(), "SELECT current_setting('fsync')::bool::int"))
	})

	t.Run("ShowsTheServersOwnWordsWhenItDoesNotStart", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := testContext()
		defer cancel()
		_, err := Start(ctx, "no_such_setting=1")
		require.ErrorContains(t, err, `unrecognized configuration parameter "no_such_setting"`)
	})
}

func TestAbandonedClusters(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "pgtest-abandoned-") //nolint:usetesting // t.TempDir is closed to the server's account
	require.NoError(t, err)
	require.NoError(t, os.Chmod(base, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })

	programs, err := FindBinaries()
	require.NoError(t, err)
	account, err := serverAccount()
	require.NoError(t, err)
	start := func() *Cluster {
		place, err := newPlace(base, account)
		require.NoError(t, err)
		cluster := &Cluster{programs: programs, place: place}
		ctx, cancel := testContext()
		defer cancel()
		require.NoError(t, cluster.create(ctx))
		t.Cleanup(func() { _ = cluster.Stop() })
		return cluster
	}
	living, dead := start(), start()
	require.NoError(t, dead.place.lock.Close()) // what the death of its owner does

	removeAbandoned(t.Context(), base)

	require.NoDirExists(t, dead.place.folder)
	require.NoFileExists(t, dead.place.lock.Name())
	await.Receive(t, "the end of the abandoned server", dead.server.exited)
	require.Equal(t, "signal: killed", dead.server.cmd.ProcessState.String(), "it does not find out by itself")
	require.Equal(t, 1, count(t, living.AdminDSN(), "SELECT 1"))
}

func TestKillServerSparesAProcessThatOnlyHasTheNumber(t *testing.T) {
	t.Parallel()
	other := exec.CommandContext(t.Context(), "sleep", "60")
	require.NoError(t, other.Start())
	data := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(strconv.Itoa(other.Process.Pid)+"\n"), 0o600))

	killServer(t.Context(), data)

	require.NoError(t, other.Process.Signal(os.Interrupt), "it runs until we end it")
	require.ErrorContains(t, other.Wait(), "interrupt")
}
