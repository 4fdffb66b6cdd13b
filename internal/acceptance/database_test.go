package acceptance

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // registers "sqlite"
)

// dump is every row of every table as text, the queue's included, and the raw files of SQLite.
func dump(t *testing.T, database string) string {
	t.Helper()
	var all strings.Builder
	db, postgres := open(t, database)
	for _, table := range tables(t, db, postgres) {
		query := "SELECT * FROM " + pgx.Identifier{table}.Sanitize()
		if postgres {
			query = "SELECT t::text FROM " + pgx.Identifier{table}.Sanitize() + " t"
		}
		rows, err := db.QueryContext(t.Context(), query) //nolint:gosec // the names come from the catalogue
		require.NoError(t, err)
		columns, err := rows.Columns()
		require.NoError(t, err)
		for rows.Next() {
			values := make([]sql.RawBytes, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			require.NoError(t, rows.Scan(into...))
			fmt.Fprintf(&all, "%s: %s\n", table, values)
		}
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
	}
	if path, ok := strings.CutPrefix(database, "sqlite://"); ok {
		for _, suffix := range []string{"", "-wal"} {
			raw, err := os.ReadFile(path + suffix)
			require.NoError(t, err)
			all.Write(raw)
		}
	}
	return all.String()
}

// requireAbsent fails if the text is anywhere in the database, also as bytes; present must be there, or the search proves nothing.
func requireAbsent(t *testing.T, database, text, present string) {
	t.Helper()
	all := dump(t, database)
	require.Contains(t, all, present)
	for _, form := range []string{text, hex.EncodeToString([]byte(text))} {
		require.NotContains(t, all, form)
	}
}

// counts are the rows of the tables that a request can write to.
func counts(t *testing.T, database string) map[string]int {
	t.Helper()
	db, postgres := open(t, database)
	out := map[string]int{}
	for _, table := range tables(t, db, postgres) {
		switch table {
		case "owners", "jobs", "attempts", "job_events", "task_versions", "contract_results", "river_job":
			var n int
			require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()).Scan(&n)) //nolint:gosec // as above
			out[table] = n
		}
	}
	require.Len(t, out, 7)
	return out
}

func open(t *testing.T, database string) (db *sql.DB, postgres bool) {
	t.Helper()
	driver, address := "pgx", database
	if path, ok := strings.CutPrefix(database, "sqlite://"); ok {
		driver, address = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, driver == "pgx"
}

func tables(t *testing.T, db *sql.DB, postgres bool) []string {
	t.Helper()
	query := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if postgres {
		query = "SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
	}
	rows, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err)
	var out []string
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		out = append(out, name)
	}
	require.NoError(t, rows.Err())
	require.NoError(t, rows.Close())
	require.Greater(t, len(out), 6)
	return out
}
