package pgtest

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// templates counts how often the template was prepared in this process.
var templates atomic.Int32

var databases = New(Template(func(dsn string) error {
	templates.Add(1)
	ctx, cancel := testContext()
	defer cancel()
	return execute(ctx, dsn, "CREATE TABLE things (name text PRIMARY KEY)")
}))

func TestMain(m *testing.M) { databases.Main(m) }

func TestDatabases(t *testing.T) {
	t.Parallel()

	t.Run("AreIsolatedCopiesOfOneTemplate", func(t *testing.T) {
		t.Parallel()
		first, second := databases.DSN(t), databases.DSN(t)
		require.NotEqual(t, first, second)
		require.NoError(t, execute(t.Context(), first, "INSERT INTO things VALUES ('mine')"))
		require.Equal(t, 1, count(t, first, "SELECT count(*) FROM things"))
		require.Equal(t, 0, count(t, second, "SELECT count(*) FROM things"))
		require.EqualValues(t, 1, templates.Load())
	})

	t.Run("AreDroppedWithTheirTestEvenWhileInUse", func(t *testing.T) {
		t.Parallel()
		var dsn string
		t.Run("uses one", func(t *testing.T) {
			dsn = databases.DSN(t)
			_, err := pgx.Connect(t.Context(), dsn) // left open
			require.NoError(t, err)
		})
		_, err := pgx.Connect(t.Context(), dsn)
		require.ErrorContains(t, err, "does not exist")
	})

	t.Run("RefuseToStartAServerThatNobodyWouldStop", func(t *testing.T) {
		t.Parallel()
		_, _, err := New().prepare(t.Context())
		require.ErrorContains(t, err, "Databases.Main")
	})

	t.Run("TellEveryTestWhyTheTemplateFailed", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("broken migration")
		d := New(Template(func(string) error { return broken }))
		d.run(func() {
			for range 2 {
				_, _, err := d.prepare(t.Context())
				require.ErrorIs(t, err, broken)
			}
		})
	})
}

// It changes the environment, so it runs alone.
func TestUsesTheServerOfTheEnvironmentAndLeavesItClean(t *testing.T) {
	cluster := StartFor(t)
	t.Setenv(EnvAdminDSN, cluster.AdminDSN())
	d := New(Template(func(dsn string) error {
		return execute(t.Context(), dsn, "CREATE TABLE things (name text)")
	}))
	const ours = "SELECT count(*) FROM pg_database WHERE datname LIKE 'docket_test_%'"
	d.run(func() {
		t.Run("uses one", func(t *testing.T) {
			require.Equal(t, 0, count(t, d.DSN(t), "SELECT count(*) FROM things"))
			require.Equal(t, 2, count(t, cluster.AdminDSN(), ours))
		})
		require.Nil(t, d.cluster)
	})
	require.Equal(t, 0, count(t, cluster.AdminDSN(), ours))
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, dsn, want string }{
		{"URL", "postgres://u:p@h:5/a?sslmode=disable", "postgres://u:p@h:5/new?sslmode=disable"},
		{"URLWithoutDatabase", "postgresql://h", "postgresql://h/new"},
		{"URLWithDatabaseAsParameter", "postgres://h/?dbname=a&x=1", "postgres://h/new?x=1"},
		{"Pairs", "host=h dbname=a", "host=h dbname=a dbname=new"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := withDatabase(row.dsn, "new")
			require.NoError(t, err)
			require.Equal(t, row.want, got)
			config, err := pgx.ParseConfig(got)
			require.NoError(t, err)
			require.Equal(t, "new", config.Database)
		})
	}

	t.Run("HidesThePasswordOfABrokenURL", func(t *testing.T) {
		t.Parallel()
		_, err := withDatabase("postgres://u:secret@h:port/", "new")
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
	})
}

func TestFindBinaries(t *testing.T) {
	t.Parallel()
	notInPath := func(string) (string, error) { return "", os.ErrNotExist }
	install := func(t *testing.T, folder string, programs ...string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(folder, 0o700))
		for _, program := range programs {
			require.NoError(t, os.WriteFile(filepath.Join(folder, program), nil, 0o700))
		}
	}

	t.Run("TakesTheNewestCompleteVersion", func(t *testing.T) {
		t.Parallel()
		base := t.TempDir()
		for _, version := range []string{"9", "15", "100"} {
			install(t, filepath.Join(base, version, "bin"), "initdb", "postgres")
		}
		install(t, filepath.Join(base, "200", "bin"), "initdb") // clients only
		got, err := findBinaries(notInPath, []string{filepath.Join(base, "*", "bin")})
		require.NoError(t, err)
		require.Equal(t, filepath.Join(base, "100", "bin"), got)
	})

	t.Run("FollowsALinkInPath", func(t *testing.T) {
		t.Parallel()
		base, err := filepath.EvalSymlinks(t.TempDir())
		require.NoError(t, err)
		install(t, filepath.Join(base, "real"), "initdb", "postgres")
		link := filepath.Join(base, "initdb")
		require.NoError(t, os.Symlink(filepath.Join(base, "real", "initdb"), link))
		got, err := findBinaries(func(string) (string, error) { return link, nil }, nil)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(base, "real"), got)
	})

	t.Run("SaysWhatToInstall", func(t *testing.T) {
		t.Parallel()
		_, err := findBinaries(notInPath, []string{filepath.Join(t.TempDir(), "*")})
		require.ErrorIs(t, err, ErrNotInstalled)
		require.ErrorContains(t, err, "apt-get install postgresql")
	})
}
