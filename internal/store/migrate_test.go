package store_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/migrate"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/store"
)

func TestMigrations(t *testing.T) {
	t.Parallel()

	// The tool that writes migrations would have nothing to write: columns, indexes (partial ones too) and checks.
	t.Run("AgreeWithTheSchema", func(t *testing.T) {
		t.Parallel()
		for name, dev := range map[string]func(t *testing.T) (driver, dsn string){
			dialect.SQLite: func(t *testing.T) (string, string) {
				t.Helper()
				return "sqlite", "file:" + filepath.Join(t.TempDir(), "dev.db") + "?_pragma=foreign_keys(1)"
			},
			dialect.Postgres: func(t *testing.T) (string, string) {
				t.Helper()
				return "pgx", emptyPostgres(t)
			},
		} {
			t.Run(name, func(t *testing.T) { // one after the other: ent's tables are shared
				folder := t.TempDir()
				require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Join("migrations", name))))
				before, err := os.ReadDir(folder)
				require.NoError(t, err)
				dir, err := sqltool.NewGooseDir(folder)
				require.NoError(t, err)
				driver, dsn := dev(t)
				db, err := sql.Open(driver, dsn)
				require.NoError(t, err)
				defer func() { require.NoError(t, db.Close()) }()
				m, err := schema.NewMigrate(entsql.OpenDB(name, db), schema.WithDir(dir), schema.WithFormatter(sqltool.GooseFormatter),
					schema.WithDialect(name), schema.WithMigrationMode(schema.ModeReplay), schema.WithDropColumn(true), schema.WithDropIndex(true))
				require.NoError(t, err)
				require.NoError(t, m.NamedDiff(t.Context(), "missing", migrate.Tables...))
				after, err := os.ReadDir(folder)
				require.NoError(t, err)
				for _, f := range after {
					if strings.Contains(f.Name(), "missing") {
						text, err := os.ReadFile(filepath.Join(folder, f.Name()))
						require.NoError(t, err)
						t.Logf("%s", text)
					}
				}
				require.Len(t, after, len(before), "run the migration tool")
			})
		}
	})

	t.Run("SayWhatIsApplied", func(t *testing.T) {
		t.Parallel()
		eachAddress(t, func(t *testing.T, address string) {
			s := open(t, address)
			list, err := s.Migrations(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, list)
			for _, m := range list {
				require.False(t, m.Applied, m.Name)
				require.True(t, m.At.IsZero(), m.Name)
			}
			require.NoError(t, s.Migrate(t.Context()))
			require.NoError(t, s.Migrate(t.Context()), "a second time there is nothing to do")
			list, err = s.Migrations(t.Context())
			require.NoError(t, err)
			names := ""
			for _, m := range list {
				require.True(t, m.Applied, m.Name)
				names += m.Name + "\n"
			}
			require.Contains(t, names, "_initial.sql\n")
			require.Contains(t, names, "queue: ")
		})
	})

	t.Run("AreAppliedByOneOfManyProcesses", func(t *testing.T) {
		t.Parallel()
		eachAddress(t, func(t *testing.T, address string) {
			const processes = 5
			errs := make([]error, processes)
			var wg sync.WaitGroup
			for i := range processes {
				s := open(t, address, store.WithMaxConns(2))
				wg.Go(func() { errs[i] = s.Migrate(t.Context()) })
			}
			wg.Wait()
			for _, err := range errs {
				require.NoError(t, err)
			}
			list, err := open(t, address).Migrations(t.Context())
			require.NoError(t, err)
			for _, m := range list {
				require.True(t, m.Applied, m.Name)
			}
		})
	})

	t.Run("NeedNoSecondConnectionOfThePool", func(t *testing.T) {
		t.Parallel()
		eachAddress(t, func(t *testing.T, address string) {
			ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
			defer cancel()
			require.NoError(t, open(t, address, store.WithMaxConns(1)).Migrate(ctx))
		})
	})

	t.Run("GoAllTheWayDownAndUpAgain", func(t *testing.T) {
		t.Parallel()
		eachAddress(t, func(t *testing.T, address string) {
			s := open(t, address)
			require.NoError(t, s.Migrate(t.Context()))
			name := dialect.SQLite
			if s.Postgres() {
				name = dialect.Postgres
			}
			files, err := filepath.Glob(filepath.Join("migrations", name, "*.sql"))
			require.NoError(t, err)
			for i := range files {
				text, err := os.ReadFile(files[len(files)-1-i])
				require.NoError(t, err)
				_, down, found := strings.Cut(string(text), "-- +goose Down")
				require.True(t, found)
				if !s.Postgres() {
					down = "PRAGMA foreign_keys = OFF;" + down // jobs and attempts refer to each other
				}
				_, err = s.DB().ExecContext(t.Context(), down)
				require.NoError(t, err)
			}
			_, err = s.DB().ExecContext(t.Context(), "DELETE FROM docket_migrations WHERE version_id > 0")
			require.NoError(t, err)
			require.NoError(t, s.Migrate(t.Context()))
		})
	})
}
