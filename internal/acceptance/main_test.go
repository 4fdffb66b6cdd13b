// Package acceptance tests the whole gateway through its real endpoint: GraphQL over HTTP, WebSocket and server-sent
// events, on SQLite and PostgreSQL, with a provider that answers over real HTTP. Where processes die, real processes do.
package acceptance

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/docket-gateway/docket/internal/program"
	"github.com/docket-gateway/docket/internal/store/storetest"
)

var databases = storetest.New()

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
var both = databases.Both()

func sqlite(t *testing.T) string {
	t.Helper()
	return databases.SQLite(t)
}
