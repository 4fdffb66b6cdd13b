package store_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/store"
)

func TestOpen(t *testing.T) {
	t.Parallel()

	t.Run("RefusesWhatItCannotOpen", func(t *testing.T) {
		t.Parallel()
		for _, address := range []string{"", "docket.db", "mysql://a:secret@b/c", "sqlite://", "sqlite:///nowhere/at/all/docket.db", "postgres://a:secret@[::1/x", "postgres://a:secret@127.0.0.1:1/x"} {
			_, err := store.Open(t.Context(), address)
			require.Error(t, err, address)
			require.NotContains(t, err.Error(), "secret")
		}
	})

	t.Run("TakesAnyFileName", func(t *testing.T) {
		t.Parallel()
		for _, name := range []string{"plain.db", "with space.db", "a%20b.db", "a?b=c.db", "a#b.db", "ä&b.db"} {
			path := filepath.Join(t.TempDir(), name)
			s := open(t, "sqlite://"+path)
			_, err := s.DB().ExecContext(t.Context(), "CREATE TABLE t (x)")
			require.NoError(t, err)
			require.FileExists(t, path)
		}
	})

	// Inputs and results are in it, and in the files beside it.
	t.Run("CreatesSQLitesFilesForTheirOwnerAlone", func(t *testing.T) {
		t.Parallel()
		for name, mode := range map[string]fs.FileMode{"new.db": 0o600, "existing.db": 0o640} {
			path := filepath.Join(t.TempDir(), name)
			if name == "existing.db" {
				require.NoError(t, os.WriteFile(path, nil, mode))
				require.NoError(t, os.Chmod(path, mode)) // whatever the umask is
			}
			s := open(t, "sqlite://"+path)
			_, err := s.DB().ExecContext(t.Context(), "CREATE TABLE t (x)")
			require.NoError(t, err)
			for _, file := range []string{path, path + "-wal", path + "-shm"} {
				info, err := os.Stat(file)
				require.NoError(t, err)
				require.Equal(t, mode, info.Mode().Perm(), file)
			}
		}
	})

	t.Run("CreatesNothingForWhoOnlyLooks", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		address := "sqlite://" + filepath.Join(dir, "docket.db")
		_, err := store.Open(t.Context(), address, store.Existing())
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, "docket migrate up")
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, files)

		open(t, address)
		s, err := store.Open(t.Context(), address, store.Existing())
		require.NoError(t, err)
		require.NoError(t, s.Close())
	})

	t.Run("SetsSQLitesPragmas", func(t *testing.T) {
		t.Parallel()
		s := open(t, "sqlite://"+filepath.Join(t.TempDir(), "docket.db"))
		for pragma, want := range map[string]string{"foreign_keys": "1", "journal_mode": "wal", "busy_timeout": "10000", "synchronous": "2"} {
			var got string
			require.NoError(t, s.DB().QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
			require.Equal(t, want, got, pragma)
		}
		require.Equal(t, 1, s.DB().Stats().MaxOpenConnections)
	})

	// A deferred transaction of another process would fail here once it writes.
	t.Run("BeginsSQLitesTransactionsAsWriters", func(t *testing.T) {
		t.Parallel()
		address := "sqlite://" + filepath.Join(t.TempDir(), "docket.db")
		first, second := open(t, address), open(t, address)
		_, err := first.DB().ExecContext(t.Context(), "CREATE TABLE t (x); INSERT INTO t VALUES (0)")
		require.NoError(t, err)
		const each = 20
		done := make(chan error, 2)
		for _, s := range []*store.Store{first, second} {
			go func() {
				var err error
				for range each {
					err = s.Tx(t.Context(), func(tx *store.Tx) error {
						var x int
						if err := tx.SQL.QueryRowContext(t.Context(), "SELECT x FROM t").Scan(&x); err != nil {
							return err
						}
						_, err := tx.SQL.ExecContext(t.Context(), "UPDATE t SET x = ?", x+1)
						return err
					})
					if err != nil {
						break
					}
				}
				done <- err
			}()
		}
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		var x int
		require.NoError(t, first.DB().QueryRowContext(t.Context(), "SELECT x FROM t").Scan(&x))
		require.Equal(t, 2*each, x)
	})

	t.Run("AnswersPingUntilItIsClosed", func(t *testing.T) {
		t.Parallel()
		eachAddress(t, func(t *testing.T, address string) {
			s, err := store.Open(t.Context(), address)
			require.NoError(t, err)
			require.NoError(t, s.Ping(t.Context()))
			require.NoError(t, s.Close())
			require.Error(t, s.Ping(t.Context()))
		})
	})
}

func TestTimes(t *testing.T) {
	t.Parallel()

	t.Run("KeepMicrosecondsAndTheInstant", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			j := addJob(t, s, "ann", `{}`)
			for _, at := range []time.Time{
				time.Date(2026, 3, 29, 1, 59, 59, 999_999_000, time.UTC),
				time.Date(2026, 3, 29, 1, 59, 59, 0, time.UTC),
				time.Date(2026, 3, 29, 1, 59, 59, 120_000_000, time.UTC),
				time.Date(2026, 7, 1, 12, 0, 0, 1_000, time.UTC),
			} {
				require.NoError(t, s.Client().Job.UpdateOneID(j.ID).SetUpdatedAt(at).Exec(system(t)))
				require.True(t, s.Client().Job.GetX(system(t), j.ID).UpdatedAt.Equal(at), at)
			}
		})
	})

	// SQLite compares times as text: what Go writes and what the database's clock writes must sort together.
	t.Run("CompareWithTheDatabasesClock", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			j := addJob(t, s, "ann", `{}`)
			earlier := func(left, right string) bool {
				t.Helper()
				var yes bool
				require.NoError(t, s.DB().QueryRowContext(t.Context(), "SELECT "+left+" < "+right+" FROM jobs").Scan(&yes))
				return yes
			}
			for _, d := range []time.Duration{-48 * time.Hour, -time.Minute, -5 * time.Second, 5 * time.Second, time.Minute, 48 * time.Hour} {
				for _, fraction := range []time.Duration{0, 100 * time.Millisecond, 123456 * time.Microsecond} {
					at := time.Now().UTC().Truncate(time.Second).Add(d + fraction)
					require.NoError(t, s.Client().Job.UpdateOneID(j.ID).SetUpdatedAt(at).Exec(system(t)))
					require.Equal(t, d < 0, earlier("updated_at", s.Now(0)), d)
					require.Equal(t, d > 0, earlier(s.Now(0), "updated_at"), d)
					require.True(t, earlier(s.Now(d-5*time.Second), "updated_at"), d)
					require.True(t, earlier("updated_at", s.Now(d+5*time.Second)), d)
				}
			}
		})
	})

	t.Run("AreOneTextOnSQLite", func(t *testing.T) {
		t.Parallel()
		s := open(t, "sqlite://"+filepath.Join(t.TempDir(), "docket.db"))
		require.NoError(t, s.Migrate(t.Context()))
		j := addJob(t, s, "ann", `{}`)
		at := time.Now().UTC() // with Go's monotonic reading
		require.NoError(t, s.Client().Job.UpdateOneID(j.ID).SetUpdatedAt(at).Exec(system(t)))
		var text string
		require.NoError(t, s.DB().QueryRowContext(t.Context(), "SELECT CAST(updated_at AS TEXT) FROM jobs").Scan(&text))
		require.Equal(t, at.Format("2006-01-02 15:04:05.999999999-07:00"), text)
	})

	t.Run("OfTheDatabasesClockAreReadBack", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, s *store.Store) {
			j := addJob(t, s, "ann", `{}`)
			_, err := s.DB().ExecContext(t.Context(), "UPDATE jobs SET updated_at = "+s.Now(time.Hour))
			require.NoError(t, err)
			require.WithinDuration(t, time.Now().Add(time.Hour), s.Client().Job.GetX(system(t), j.ID).UpdatedAt, 30*time.Second)
		})
	})
}

func TestJSON(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, s *store.Store) {
		for _, raw := range []string{
			`9007199254740993`, `1e400`, `1.10`, `-0`, `12345678901234567890123`, `"\u0000"`, `"9007199254740993"`, `null`, `true`, `""`,
			`{"b":1,"a":[1.0,2e0],"b2":9007199254740993,"x":"\u0000","é":"\ud83d\ude00"}`,
			`{"text":"` + strings.Repeat("a", 256<<10) + `"}`,
		} {
			j := addJob(t, s, "ann", raw)
			require.Equal(t, raw, string(s.Client().Job.GetX(system(t), j.ID).Input))
			a := j.QueryAttempts().OnlyX(system(t))
			s.Client().Job.UpdateOneID(j.ID).SetState("SUCCEEDED").SetCompletedByID(a.ID).SetResult(json.RawMessage(raw)).ExecX(system(t))
			require.Equal(t, raw, string(s.Client().Job.GetX(system(t), j.ID).Result))
			require.NotNil(t, s.Client().Job.GetX(system(t), j.ID).Result)
		}
	})
}

// ent selects DISTINCT along edges, which some types of columns cannot do.
func TestEdges(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, s *store.Store) {
		sys := system(t)
		j := addJob(t, s, "ann", `{"a":1}`)
		a := j.QueryAttempts().OnlyX(sys)
		s.Client().Job.UpdateOneID(j.ID).SetState("SUCCEEDED").SetCompletedByID(a.ID).SetResult(json.RawMessage(`1`)).ExecX(sys)
		require.Equal(t, j.ID, a.QueryJob().OnlyX(sys).ID)
		require.Equal(t, j.ID, a.QueryCompletes().OnlyX(sys).ID)
		require.Equal(t, a.ID, j.QueryCompletedBy().OnlyX(sys).ID)
		require.Equal(t, 1, j.QueryEvents().OnlyX(sys).Number)
		require.Equal(t, 1, a.QueryEvents().OnlyX(sys).Number)
		require.Equal(t, j.ID, j.QueryEvents().QueryJob().OnlyX(sys).ID)
		require.Equal(t, j.ID, j.QueryOwner().QueryJobs().OnlyX(sys).ID)
		require.Equal(t, j.ID, j.QueryVersionOfTask().QueryJobs().OnlyX(sys).ID)
		rows := s.Client().Job.Query().WithAttempts().WithEvents().WithCompletedBy().AllX(sys)
		require.Len(t, rows[0].Edges.Events, 1)
	})
}
