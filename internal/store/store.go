// Package store opens the database, brings its schema up to date and runs transactions that ent and the queue share.
//
// It imports ent and internal/viewer and nothing else of this module.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // registers the pure Go driver "sqlite"

	"github.com/docket-gateway/docket/ent"
	_ "github.com/docket-gateway/docket/ent/runtime" // registers defaults and privacy policies
)

// Store is one database, SQLite or PostgreSQL. It is safe for concurrent use.
type Store struct {
	client *ent.Client
	driver dialect.Driver
	db     *sql.DB
	pool   *pgxpool.Pool // nil for SQLite
	direct *pgxpool.Pool // past a pooler; pool if there is none
	path   string        // SQLite's file
}

// Option changes how a store is opened.
type Option func(*settings)

type settings struct {
	maxConns int32
	existing bool
	direct   string
}

// WithMaxConns bounds PostgreSQL's connections (default 32). SQLite always has one.
func WithMaxConns(n int32) Option { return func(s *settings) { s.maxConns = n } }

// WithDirect gives another address of the same PostgreSQL, for what a transaction pooler breaks: LISTEN, and the lock under
// which the schema is migrated. Empty: the store's own address.
func WithDirect(address string) Option { return func(s *settings) { s.direct = address } }

// Existing makes it an error that SQLite's file is not there, instead of creating it: for those who only look.
func Existing() Option { return func(s *settings) { s.existing = true } }

// Open connects to "sqlite://path" or "postgres://…". It does not touch the schema. An SQLite file that is not there is
// created for its owner alone (0600), since inputs and results will be in it; one that is there keeps its mode.
func Open(ctx context.Context, address string, options ...Option) (*Store, error) {
	s := settings{maxConns: 32}
	for _, o := range options {
		o(&s)
	}
	switch scheme, rest, _ := strings.Cut(address, "://"); scheme {
	case "sqlite":
		return openSQLite(ctx, rest, s)
	case "postgres", "postgresql":
		return openPostgres(ctx, address, s)
	default:
		return nil, fmt.Errorf("store: the database must be sqlite://path or postgres://…, not scheme %q", scheme)
	}
}

func openSQLite(ctx context.Context, path string, s settings) (*Store, error) {
	if path == "" {
		return nil, fmt.Errorf("store: sqlite:// needs a path")
	}
	if !s.existing {
		if err := createFile(path); err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("store: open sqlite: %w; `docket migrate up` or the first start creates it", err)
	}
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: strings.Join([]string{
		"mode=rw", // never create it with SQLite's own mode, 0644
		"_pragma=busy_timeout(10000)", "_pragma=foreign_keys(1)", "_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)",
		// Deferred transactions fail with SQLITE_BUSY in spite of the time-out, when they turn into writers.
		"_txlock=immediate",
		// Without it times carry Go's monotonic suffix and do not compare as text.
		"_time_format=sqlite",
	}, "&")}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, fmt.Errorf("store: open sqlite: %w", err)
	}
	db.SetMaxOpenConns(1) // one writer at a time anyway; more connections only wait for each other
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("store: open sqlite %s: %w", path, err)
	}
	return newStore(dialect.SQLite, db, nil, path), nil
}

// createFile makes an empty file, which is an empty database, unless there is one. SQLite gives the mode of the file to those
// beside it (-wal, -shm). A file that is there is not opened: closing it would drop the locks of this process's other stores.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store: open sqlite: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("store: open sqlite: %w", err)
	}
	return nil
}

func openPostgres(ctx context.Context, address string, s settings) (*Store, error) {
	pool, err := connectPool(ctx, address, s.maxConns)
	if err != nil {
		return nil, err
	}
	st := newStore(dialect.Postgres, stdlib.OpenDBFromPool(pool), pool, "")
	st.direct = pool
	if s.direct != "" {
		if st.direct, err = connectPool(ctx, s.direct, maxDirectConns); err != nil {
			return nil, errors.Join(fmt.Errorf("the direct connection: %w", err), st.closeOwn())
		}
	}
	return st, nil
}

// maxDirectConns is more than the queue's one listener and a moment's checks need.
const maxDirectConns = 4

func connectPool(ctx context.Context, address string, maxConns int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("store: the database address is not valid") // pgx's error may repeat the password
	}
	if !strings.Contains(address, "pool_max_conns") {
		cfg.MaxConns = maxConns
	}
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "docket"
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("store: open postgres: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("store: reach postgres at %s: %w", cfg.ConnConfig.Host, err)
	}
	return pool, nil
}

func newStore(name string, db *sql.DB, pool *pgxpool.Pool, path string) *Store {
	drv := entsql.OpenDB(name, db)
	return &Store{client: ent.NewClient(ent.Driver(drv)), driver: drv, db: db, pool: pool, path: path}
}

// Client reads outside of transactions. What it returns is subject to the privacy policies.
func (s *Store) Client() *ent.Client { return s.client }

// DB is the pool that the queue shares.
func (s *Store) DB() *sql.DB { return s.db }

// Pool is PostgreSQL's pool, nil for SQLite.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Direct is a pool of connections that no transaction pooler shares, for LISTEN; nil for SQLite.
func (s *Store) Direct() *pgxpool.Pool { return s.direct }

// Postgres reports whether the database is PostgreSQL rather than SQLite.
func (s *Store) Postgres() bool { return s.pool != nil }

// Ping fails if the database does not answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.PingContext(ctx); err != nil {
		return fmt.Errorf("store: ping: %w", err)
	}
	return nil
}

// Close waits for open transactions.
func (s *Store) Close() error {
	if s.direct != nil && s.direct != s.pool {
		s.direct.Close()
	}
	return s.closeOwn()
}

func (s *Store) closeOwn() error {
	err := s.db.Close()
	if s.pool != nil {
		s.pool.Close()
	}
	return err
}

// Now returns an SQL expression for the database's clock, moved by d. Leases are compared by this clock alone, so that
// replicas need not agree on the time.
func (s *Store) Now(d time.Duration) string {
	if s.Postgres() {
		return fmt.Sprintf("(clock_timestamp() + interval '%d milliseconds')", d.Milliseconds())
	}
	return fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%f+00:00', 'now', '%+.3f seconds')", d.Seconds())
}
