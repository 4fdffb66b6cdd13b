// Package pgtest gives tests a PostgreSQL of their own: a throw-away cluster made from the installed programs, and a
// fresh database for every test.
//
// A test package owns one Databases value:
//
//	var databases = pgtest.New(pgtest.Template(migrate))
//
//	func TestMain(m *testing.M) { databases.Main(m) }
//
//	func TestKeepsOneWinner(t *testing.T) {
//		dsn := databases.DSN(t)
//		…
//	}
//
// Tests that stop or kill the server take a cluster of their own from StartFor, so that they disturb nobody.
//
// It imports internal/await and is imported by tests and by internal/check only.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/docket-gateway/docket/internal/await"
)

// EnvAdminDSN names the environment variable that holds the address of a running server. If it is set, tests create
// their databases there and start no cluster; its user must be allowed to create databases.
const EnvAdminDSN = "DOCKET_TEST_POSTGRES"

const (
	startTimeout    = await.Patience // initdb on a busy machine with two cores takes most
	databaseTimeout = await.Patience
)

// Databases hands out databases to the tests of one process. It starts its cluster when the first one is asked for.
type Databases struct {
	migrate func(dsn string) error

	mu       sync.Mutex
	running  bool // Main is on the stack, so what is started will be stopped
	prepared bool
	err      error // of the preparation, told to every test
	admin    string
	template string
	cluster  *Cluster
}

// Option changes what New makes.
type Option func(*Databases)

// Template makes every test's database a copy of one that migrate was applied to, once per process. Migrate must have
// closed its connections when it returns.
func Template(migrate func(dsn string) error) Option {
	return func(d *Databases) { d.migrate = migrate }
}

// New starts nothing yet.
func New(options ...Option) *Databases {
	d := &Databases{}
	for _, option := range options {
		option(d)
	}
	return d
}

// Main runs the tests and stops what DSN started. Call it from TestMain, as the last thing.
func (d *Databases) Main(m *testing.M) {
	d.run(func() { m.Run() }) // the testing package keeps the exit code
}

func (d *Databases) run(tests func()) {
	d.mu.Lock()
	d.running = true
	d.mu.Unlock()
	defer func() {
		if err := d.close(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
		}
	}()
	tests()
}

// DSN returns the address of a new database that only this test uses. It is dropped, with whatever is still connected
// to it, when the test ends. Without PostgreSQL the test fails; it is never skipped.
func (d *Databases) DSN(tb testing.TB) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	admin, template, err := d.prepare(ctx)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	name := databaseName()
	if err := createDatabase(ctx, admin, name, template); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), databaseTimeout)
		defer cancel()
		if err := dropDatabase(ctx, admin, name); err != nil {
			tb.Errorf("pgtest: %v", err)
		}
	})
	dsn, err := withDatabase(admin, name)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return dsn
}

func (d *Databases) prepare(ctx context.Context) (admin, template string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.running {
		return "", "", errors.New("call Databases.Main from TestMain, or the server would outlive the tests")
	}
	if !d.prepared {
		d.prepared = true
		d.err = d.prepareOnce(ctx)
	}
	return d.admin, d.template, d.err
}

func (d *Databases) prepareOnce(ctx context.Context) error {
	d.admin = os.Getenv(EnvAdminDSN)
	if d.admin == "" {
		cluster, err := Start(ctx)
		if err != nil {
			return err
		}
		d.cluster, d.admin = cluster, cluster.AdminDSN()
	}
	if d.migrate == nil {
		return nil
	}
	name := databaseName()
	if err := createDatabase(ctx, d.admin, name, ""); err != nil {
		return err
	}
	d.template = name
	dsn, err := withDatabase(d.admin, name)
	if err != nil {
		return err
	}
	if err := d.migrate(dsn); err != nil {
		return fmt.Errorf("prepare the template database: %w", err)
	}
	return nil
}

func (d *Databases) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = false
	if d.cluster != nil {
		return d.cluster.Stop()
	}
	if d.template != "" {
		ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
		defer cancel()
		return dropDatabase(ctx, d.admin, d.template)
	}
	return nil
}

// StartFor starts a cluster for one test, which may stop, kill and restart it. Settings are as for Start.
func StartFor(tb testing.TB, settings ...string) *Cluster {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	cluster, err := Start(ctx, settings...)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			tb.Errorf("pgtest: %v", err)
		}
	})
	return cluster
}

// databaseName carries the process id, so that a database that was left behind can be told from one in use.
func databaseName() string {
	return fmt.Sprintf("docket_test_%d_%s", os.Getpid(), strings.ToLower(rand.Text()[:12]))
}
