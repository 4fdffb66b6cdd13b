package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"entgo.io/ent/dialect"
	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"database/sql"
)

//go:embed migrations
var migrations embed.FS

// lockNumber is the advisory lock that processes take before they migrate.
const lockNumber = 0x646f636b6574 // "docket"

// Migration is one step of the schema.
type Migration struct {
	Version int64
	Name    string
	Applied bool
	At      time.Time // zero if not applied
}

// Migrate brings Docket's and the queue's tables up to date. Only one process at a time does so; others wait for it.
func (s *Store) Migrate(ctx context.Context) (err error) {
	unlock, err := s.lockSchema(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := s.provider()
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("store: migrate: %w", err)
	}
	m, err := s.queueMigrator()
	if err != nil {
		return err
	}
	if err := m.up(ctx); err != nil {
		return fmt.Errorf("store: migrate the queue: %w", err)
	}
	return nil
}

// Migrations lists the steps and whether they are applied, Docket's first and then the queue's.
func (s *Store) Migrations(ctx context.Context) ([]Migration, error) {
	p, err := s.provider()
	if err != nil {
		return nil, err
	}
	list, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: migration status: %w", err)
	}
	var out []Migration
	for _, m := range list {
		out = append(out, Migration{Version: m.Source.Version, Name: m.Source.Path, Applied: m.State == goose.StateApplied, At: m.AppliedAt})
	}
	q, err := s.queueMigrator()
	if err != nil {
		return nil, err
	}
	queue, err := q.status(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: migration status of the queue: %w", err)
	}
	return append(out, queue...), nil
}

func (s *Store) provider() (*goose.Provider, error) {
	name, d := dialect.SQLite, goose.DialectSQLite3
	if s.Postgres() {
		name, d = dialect.Postgres, goose.DialectPostgres
	}
	dir, err := fs.Sub(migrations, "migrations/"+name)
	if err != nil {
		return nil, fmt.Errorf("store: migrations: %w", err)
	}
	p, err := goose.NewProvider(d, s.db, dir, goose.WithTableName("docket_migrations"))
	if err != nil {
		return nil, fmt.Errorf("store: migrations: %w", err)
	}
	return p, nil
}

// lockSchema holds an advisory lock on a connection of its own, or a lock on a file beside SQLite's.
func (s *Store) lockSchema(ctx context.Context) (unlock func(), err error) {
	if !s.Postgres() {
		l := flock.New(s.path + ".lock")
		if ok, err := l.TryLockContext(ctx, 50*time.Millisecond); err != nil || !ok {
			return nil, fmt.Errorf("store: lock the schema: %w", err)
		}
		return func() { _ = l.Unlock() }, nil
	}
	// Not one of the pool's connections: the migration itself needs them, and there may be only one.
	conn, err := pgx.ConnectConfig(ctx, s.direct.Config().ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("store: lock the schema: %w", err)
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(lockNumber)); err != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("store: lock the schema: %w", err)
	}
	return func() { _ = conn.Close(context.WithoutCancel(ctx)) }, nil // which unlocks
}

type queueMigrator struct {
	*rivermigrate.Migrator[*sql.Tx]
}

func (s *Store) queueMigrator() (queueMigrator, error) {
	if s.Postgres() {
		m, err := rivermigrate.New(riverdatabasesql.New(s.db), nil)
		return queueMigrator{m}, err
	}
	m, err := rivermigrate.New(riversqlite.New(s.db), nil)
	return queueMigrator{m}, err
}

func (m queueMigrator) up(ctx context.Context) error {
	_, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func (m queueMigrator) status(ctx context.Context) ([]Migration, error) {
	have, err := m.ExistingVersions(ctx)
	if err != nil {
		return nil, err
	}
	done := make(map[int]bool, len(have))
	for _, v := range have {
		done[v.Version] = true
	}
	var out []Migration
	for _, v := range m.AllVersions() {
		out = append(out, Migration{Version: int64(v.Version), Name: "queue: " + v.Name, Applied: done[v.Version]})
	}
	return out, nil
}
