package benchmark

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/store"
)

// bare runs createJob's statements with nothing around them: bare pgx on PostgreSQL, database/sql on SQLite.
type bare struct {
	s   *store.Store
	ctx context.Context //nolint:containedctx // a benchmark's
}

const (
	insertJob = `INSERT INTO jobs (id, owner_id, idempotency_key, fingerprint, task, task_version, input, target, fallbacks, state, version, last_event, created_at, updated_at)
		VALUES ($1, 'own_bench', $2, $3, 'triage', 'sha256:bench', $4, 'demo/inkjet', '["demo/laser"]', 'QUEUED', 1, 2, $5, $5)
		ON CONFLICT (owner_id, idempotency_key) DO NOTHING RETURNING id`
	insertEntry = `INSERT INTO river_job (args, kind, max_attempts, metadata, priority, queue, state)
		VALUES ($1, 'attempt', 1, '{}', 1, 'attempts', 'available') RETURNING id`
	insertAttempt = `INSERT INTO attempts (id, job_id, number, target, reason, state, job_version, created_at, due_at, queue_entry)
		VALUES ($1, $2, 1, 'demo/inkjet', 'PRIMARY', 'STARTING', 1, $3, $3, $4)`
	insertEvents = `INSERT INTO job_events (job_id, number, type, at, attempt_id, to_state, detail)
		VALUES ($1, 1, 'JOB_CREATED', $2, NULL, 'QUEUED', $4), ($1, 2, 'ATTEMPT_CREATED', $2, $3, 'STARTING', $4)`
	selectJob = `SELECT id, owner_id, idempotency_key, fingerprint, task, task_version, input, target, fallbacks, state, version, last_event, created_at, updated_at
		FROM jobs WHERE id = $1`
)

func newBare(b *testing.B, address string) bare {
	b.Helper()
	s := open(b, address)
	now := time.Now().UTC()
	_, err := s.DB().ExecContext(b.Context(), `INSERT INTO owners (id, issuer, subject, created_at) VALUES ('own_bench', 'bench', 'bench', $1)`, now)
	require.NoError(b, err)
	_, err = s.DB().ExecContext(b.Context(), `INSERT INTO task_versions (id, name, version, content, created_at) VALUES ('sha256:bench', 'triage', '1', $1, $2)`, []byte("{}"), now)
	require.NoError(b, err)
	return bare{s: s, ctx: b.Context()}
}

func (x bare) create(i int64) error {
	n := strconv.FormatInt(i, 10)
	args := arguments{
		job: "job_" + n, attempt: "att_" + n, key: "bench-" + n, fingerprint: make([]byte, 32),
		input: `{"text":"` + text + `"}`, now: time.Now().UTC(), detail: `{"by":"bench","target":"demo/inkjet"}`,
	}
	if x.s.Postgres() {
		return pgx.BeginFunc(x.ctx, x.s.Pool(), func(tx pgx.Tx) error {
			exec := func(q string, a ...any) error { _, err := tx.Exec(x.ctx, q, a...); return err }
			one := func(q string, dst any, a ...any) error { return tx.QueryRow(x.ctx, q, a...).Scan(dst) }
			return args.run(exec, one, func() error {
				rows, err := tx.Query(x.ctx, selectJob, args.job)
				if err != nil {
					return err
				}
				rows.Close()
				return rows.Err()
			})
		})
	}
	tx, err := x.s.DB().BeginTx(x.ctx, nil)
	if err != nil {
		return err
	}
	exec := func(q string, a ...any) error { _, err := tx.ExecContext(x.ctx, q, a...); return err }
	one := func(q string, dst any, a ...any) error { return tx.QueryRowContext(x.ctx, q, a...).Scan(dst) }
	err = args.run(exec, one, func() error { return x.read(tx, args.job) })
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (x bare) read(tx *sql.Tx, id string) error {
	rows, err := tx.QueryContext(x.ctx, selectJob, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

type arguments struct {
	job, attempt, key, input, detail string
	fingerprint                      []byte
	now                              time.Time
}

func (a arguments) run(exec func(string, ...any) error, one func(string, any, ...any) error, read func() error) error {
	var id string
	var entry int64
	if err := one(insertJob, &id, a.job, a.key, a.fingerprint, a.input, a.now); err != nil {
		return err
	}
	if err := one(insertEntry, &entry, `{"attempt_id":"`+a.attempt+`"}`); err != nil {
		return err
	}
	if err := exec(insertAttempt, a.attempt, a.job, a.now, entry); err != nil {
		return err
	}
	if err := exec(insertEvents, a.job, a.now, a.attempt, a.detail); err != nil {
		return err
	}
	return read()
}
