// Package campaign tries to break Docket: random intents by impatient users, against real processes that are killed, a
// database that goes away, connections that are cut and slowed, and a provider that misbehaves in every way it can.
// Afterwards internal/campaign/verify judges what everybody saw.
//
//	go test ./internal/campaign -campaign.intents=10000
//	go test ./internal/campaign -run Guards -timeout 1h -campaign.guards=all -v
//
// The plan (who asks for what, what the provider does with it, which fault comes when) follows from the seed, which is
// printed; what the machine's scheduler makes of it does not.
package campaign

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/docket-gateway/docket/internal/pgtest"
	"github.com/docket-gateway/docket/internal/program"
)

var (
	intentsFlag = flag.Int("campaign.intents", 60, "intents of the campaign, on each database")
	seedFlag    = flag.Uint64("campaign.seed", 0, "seed of the campaign's plan; 0 picks one")
	usersFlag   = flag.Int("campaign.users", 24, "users at once")
	guardsFlag  = flag.String("campaign.guards", "I5", "names of the guards to put out of work, separated by commas, or all")
)

// databases only stops what was started: the campaign's clusters are its own, since it kills them.
var databases = pgtest.New()

// folder holds the programs, gone when the tests are over.
var folder string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docket-campaign-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	folder = dir
	databases.Main(m)
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// released builds Docket as it is, once.
var released = sync.OnceValues(func() (string, error) { return build("released") })

func build(name string, flags ...string) (string, error) {
	dir := filepath.Join(folder, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return program.Build(ctx, dir, flags...)
}

func chooseSeed() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return rand.Uint64N(1_000_000)
}
