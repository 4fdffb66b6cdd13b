package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/job"
)

// Tx is a transaction that ent and the queue share.
type Tx struct {
	*ent.Client
	SQL *sql.Tx

	store       *Store
	afterCommit []func()
}

// AfterCommit runs f once the transaction is committed, and never if it is not.
func (tx *Tx) AfterCommit(f func()) { tx.afterCommit = append(tx.afterCommit, f) }

// CommitError means that nobody knows whether the transaction took place.
type CommitError struct{ Err error }

func (e *CommitError) Error() string { return "commit: " + e.Err.Error() }
func (e *CommitError) Unwrap() error { return e.Err }

// Tx runs f in one transaction (SQLite: BEGIN IMMEDIATE; PostgreSQL: READ COMMITTED). Entities that f lets out keep
// working afterwards, on the pool. An error of f rolls back and is returned as it is; a commit that fails is a
// *CommitError.
func (s *Store) Tx(ctx context.Context, f func(tx *Tx) error) (err error) {
	sqlTx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("store: begin: %w", err)
	}
	drv := &txDriver{Conn: entsql.Conn{ExecQuerier: sqlTx}, pool: s.driver}
	defer drv.over.Store(true)
	tx := &Tx{Client: ent.NewClient(ent.Driver(drv)), SQL: sqlTx, store: s}
	done := false
	defer func() {
		if !done { // f failed or panicked
			if rerr := sqlTx.Rollback(); rerr != nil && !errors.Is(rerr, sql.ErrTxDone) && err != nil {
				err = errors.Join(err, fmt.Errorf("store: roll back: %w", rerr))
			}
		}
	}()
	if err := f(tx); err != nil {
		return err
	}
	// database/sql rolls back by itself once the context is over; said here, it is not taken for a commit that may have
	// taken place.
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	done = true
	if err := sqlTx.Commit(); err != nil {
		return fmt.Errorf("store: %w", &CommitError{Err: err})
	}
	drv.over.Store(true)
	for _, f := range tx.afterCommit {
		f()
	}
	return nil
}

// LockJob reads a job and holds its row until the transaction ends. Every creation or move of an attempt starts here, or
// with the claim's own update. SQLite's transactions hold the whole database already.
func (tx *Tx) LockJob(ctx context.Context, id string) (*ent.Job, error) {
	q := tx.Job.Query().Where(job.ID(id))
	if tx.store.Postgres() {
		q = q.ForUpdate()
	}
	return q.Only(ctx)
}

// LockOwner makes whoever else locks the owner wait until the transaction ends. It comes after the insert of a job, which holds
// the owner's key already: NO KEY is what two of them do not wait for each other with.
func (tx *Tx) LockOwner(ctx context.Context, id string) error {
	if !tx.store.Postgres() {
		return nil // SQLite's transactions hold the whole database already
	}
	var one int
	return tx.SQL.QueryRowContext(ctx, "SELECT 1 FROM owners WHERE id = $1 FOR NO KEY UPDATE", id).Scan(&one)
}

// txDriver runs ent's statements in a *sql.Tx; once that is over, on the pool.
type txDriver struct {
	entsql.Conn
	pool dialect.Driver
	over atomic.Bool
}

func (d *txDriver) Exec(ctx context.Context, query string, args, v any) error {
	if d.over.Load() {
		return d.pool.Exec(ctx, query, args, v)
	}
	return d.Conn.Exec(ctx, query, args, v)
}

func (d *txDriver) Query(ctx context.Context, query string, args, v any) error {
	if d.over.Load() {
		return d.pool.Query(ctx, query, args, v)
	}
	return d.Conn.Query(ctx, query, args, v)
}

// Tx gives ent's own multi-statement changes the same transaction.
func (d *txDriver) Tx(ctx context.Context) (dialect.Tx, error) {
	if d.over.Load() {
		return d.pool.Tx(ctx)
	}
	return dialect.NopTx(d), nil
}

func (d *txDriver) Close() error    { return nil }
func (d *txDriver) Dialect() string { return d.pool.Dialect() }
