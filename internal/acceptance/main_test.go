// Package acceptance tests the whole gateway through its real endpoint: GraphQL over HTTP, WebSocket and server-sent
// events, on SQLite and PostgreSQL, with a provider that answers over real HTTP. Where processes die, real processes do.
package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/docket-gateway/docket/internal/pgtest"
	"github.com/docket-gateway/docket/internal/program"
	"github.com/docket-gateway/docket/internal/store"
)

// patience bounds one wait. It is far above what a wait takes, since several tests share few cores.
const patience = 60 * time.Second

var databases = pgtest.New(pgtest.Template(func(dsn string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := store.Open(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = s.Close() }()
	return s.Migrate(ctx)
}))

// programs is the folder that the program is built into, gone when the tests are over.
var programs string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docket-acceptance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	databases.Main(m)
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// built is the gateway's program, with the race detector if the tests have it.
var built = sync.OnceValues(func() (string, error) {
	var flags []string
	if raceEnabled {
		flags = program.Race()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return program.Build(ctx, programs, flags...)
})

// both are the databases, each a fresh one.
var both = map[string]func(t *testing.T) (address string){
	"SQLite":     sqlite,
	"PostgreSQL": func(t *testing.T) string { t.Helper(); return databases.DSN(t) },
}

func sqlite(t *testing.T) string {
	t.Helper()
	return "sqlite://" + filepath.Join(t.TempDir(), "docket.db")
}

// until polls the condition, and fails the test if it does not come true.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !condition() {
		select {
		case <-again.C:
		case <-late.C:
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
	}
}
