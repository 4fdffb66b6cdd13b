package campaign

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	_ "modernc.org/sqlite"             // registers "sqlite"

	"github.com/docket-gateway/docket/internal/campaign/verify"
)

// collect reads what the database holds, past all of Docket's own code.
func collect(ctx context.Context, address string, h *verify.History) (err error) {
	driver, postgres := "pgx", true
	if path, ok := strings.CutPrefix(address, "sqlite://"); ok {
		driver, postgres, address = "sqlite", false, "file:"+path+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := collectJobs(ctx, db, h); err != nil {
		return err
	}
	if err := collectAttempts(ctx, db, h); err != nil {
		return err
	}
	if err := collectEvents(ctx, db, h); err != nil {
		return err
	}
	h.Everything, err = everything(ctx, db, postgres)
	return err
}

func each(ctx context.Context, db *sql.DB, query string, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return rows.Err()
}

func collectJobs(ctx context.Context, db *sql.DB, h *verify.History) error {
	const query = `SELECT j.id, o.subject, j.idempotency_key, j.task, j.target, j.state, j.fallbacks, j.version, j.last_event, j.input, j.result, j.completed_by_id
		FROM jobs j JOIN owners o ON o.id = j.owner_id ORDER BY j.id`
	h.Jobs = nil
	return each(ctx, db, query, func(rows *sql.Rows) error {
		var (
			j                        verify.Job
			fallbacks, input, result []byte
			winner                   sql.NullString
		)
		err := rows.Scan(&j.ID, &j.Owner, &j.Key, &j.Task, &j.Target, &j.State, &fallbacks, &j.Version, &j.LastEvent, &input, &result, &winner)
		if err != nil {
			return err
		}
		j.Input, j.Result, j.CompletedBy = input, result, winner.String
		h.Jobs = append(h.Jobs, j)
		return json.Unmarshal(fallbacks, &h.Jobs[len(h.Jobs)-1].Fallbacks)
	})
}

func collectAttempts(ctx context.Context, db *sql.DB, h *verify.History) error {
	const query = `SELECT id, job_id, target, reason, state, coalesce(error_code, ''), number, job_version, sent_at IS NOT NULL FROM attempts ORDER BY job_id, number`
	h.Attempts = nil
	return each(ctx, db, query, func(rows *sql.Rows) error {
		var a verify.Attempt
		err := rows.Scan(&a.ID, &a.Job, &a.Target, &a.Reason, &a.State, &a.Code, &a.Number, &a.JobVersion, &a.Sent)
		h.Attempts = append(h.Attempts, a)
		return err
	})
}

func collectEvents(ctx context.Context, db *sql.DB, h *verify.History) error {
	const query = `SELECT job_id, number, type, coalesce(attempt_id, ''), coalesce(from_state, ''), coalesce(to_state, ''), detail FROM job_events ORDER BY job_id, number`
	h.Events = nil
	return each(ctx, db, query, func(rows *sql.Rows) error {
		var (
			e      verify.Event
			detail []byte
		)
		err := rows.Scan(&e.Job, &e.Number, &e.Type, &e.Attempt, &e.From, &e.To, &detail)
		e.Detail = detail
		h.Events = append(h.Events, e)
		return err
	})
}

// everything is each row of each table as text.
func everything(ctx context.Context, db *sql.DB, postgres bool) (string, error) {
	list := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if postgres {
		list = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
	}
	var tables []string
	err := each(ctx, db, list, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		tables = append(tables, name)
		return err
	})
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, table := range tables {
		columns := "*"
		if postgres {
			columns = "t::text"
		}
		err := each(ctx, db, fmt.Sprintf("SELECT %s FROM %s t", columns, pgx.Identifier{table}.Sanitize()), func(rows *sql.Rows) error {
			names, err := rows.Columns()
			if err != nil {
				return err
			}
			values, into := make([]sql.RawBytes, len(names)), make([]any, len(names))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				return err
			}
			all.WriteString(table)
			for _, v := range values {
				all.WriteByte(' ')
				all.Write(v)
			}
			all.WriteByte('\n')
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return all.String(), nil
}

// execute runs one statement.
func execute(ctx context.Context, address, statement string) error {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, statement)
	return err
}
