package acceptance

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
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
		columns := "*"
		if postgres {
			columns = "t::text"
		}
		for _, row := range query(t, db, fmt.Sprintf("SELECT %s FROM %s t", columns, pgx.Identifier{table}.Sanitize())) {
			fmt.Fprintf(&all, "%s: %s\n", table, row)
		}
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
			text := "SELECT count(*) FROM " + table
			if table == "river_job" {
				text += " WHERE kind <> 'gates_look'" // periodic
			}
			n, err := strconv.Atoi(query(t, db, text)[0][0])
			require.NoError(t, err)
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
	text := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if postgres {
		text = "SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
	}
	var out []string
	for _, row := range query(t, db, text) {
		out = append(out, row[0])
	}
	require.Greater(t, len(out), 6)
	return out
}

// query returns all rows as text.
func query(t *testing.T, db *sql.DB, text string) (all [][]string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), text)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	columns, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values := make([]sql.RawBytes, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, rows.Scan(into...))
		row := make([]string, len(columns))
		for i, v := range values {
			row[i] = string(v)
		}
		all = append(all, row)
	}
	require.NoError(t, rows.Err())
	return all
}
