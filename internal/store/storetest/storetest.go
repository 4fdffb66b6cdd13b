// Package storetest gives tests databases that have Docket's tables and nothing in them, on SQLite and on PostgreSQL.
//
// A test package owns one Databases value:
//
//	var databases = storetest.New()
//
//	func TestMain(m *testing.M) { databases.Main(m) }
//
//	func TestKeepsOneWinner(t *testing.T) {
//		databases.Each(t, func(t *testing.T, address string) { … })
//	}
//
// It imports internal/pgtest and internal/store and is imported by tests only.
package storetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/pgtest"
	"github.com/docket-gateway/docket/internal/store"
)

// Databases hands out databases to the tests of one process, each a copy of one that was migrated once. Main is pgtest's, and
// DSN the address of one on PostgreSQL.
type Databases struct {
	*pgtest.Databases

	file func() ([]byte, error) // SQLite's, migrated
}

// New makes nothing yet.
func New() *Databases {
	return &Databases{Databases: pgtest.New(pgtest.Template(Migrate)), file: sync.OnceValues(migratedFile)}
}

// Migrate gives a database its tables and leaves no connection to it.
func Migrate(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), await.Patience)
	defer cancel()
	s, err := store.Open(ctx, address)
	if err != nil {
		return err
	}
	return errors.Join(s.Migrate(ctx), s.Close())
}

func migratedFile() ([]byte, error) {
	dir, err := os.MkdirTemp("", "docket-storetest-") // not the first test's, which ends before the others
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "template.db")
	if err := Migrate("sqlite://" + path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// SQLite is the address of a new file that only this test uses. It goes with the test's folder.
func (d *Databases) SQLite(tb testing.TB) string {
	tb.Helper()
	raw, err := d.file()
	if err != nil {
		tb.Fatalf("storetest: %v", err)
	}
	path := filepath.Join(tb.TempDir(), "docket.db")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		tb.Fatalf("storetest: %v", err)
	}
	return "sqlite://" + path
}

// Both makes a database of each kind, by the kind's name.
func (d *Databases) Both() map[string]func(tb testing.TB) (address string) {
	return map[string]func(testing.TB) string{"SQLite": d.SQLite, "PostgreSQL": d.DSN}
}

// Each runs a test on both at once.
func (d *Databases) Each(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	d.EachKind(t, func(t *testing.T, fresh func(tb testing.TB) string) { test(t, fresh(t)) })
}

// EachKind is Each for a test that makes several databases of the kind.
func (d *Databases) EachKind(t *testing.T, test func(t *testing.T, fresh func(tb testing.TB) (address string))) {
	t.Helper()
	for name, fresh := range d.Both() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, fresh)
		})
	}
}
