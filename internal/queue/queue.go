// Package queue opens River's client, through which entries are added in the transaction of what they follow from and
// are worked on by whichever process is there. Each part of the program brings its own kind of entry.
//
// It imports internal/store and nothing else of this module.
package queue

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/docket-gateway/docket/internal/store"
)

// Client adds entries, starts working on them and stops.
type Client = river.Client[*sql.Tx]

// Part is a part of the program that has entries of its own.
type Part interface {
	// Register adds the part's workers and names its queues. A queue with MaxWorkers 0 is not worked on by this process;
	// its workers are registered all the same, because River's leader discards entries of a kind that it does not know.
	Register(w *river.Workers) (map[string]river.QueueConfig, error)
	// Use hands over the client, before it is started.
	Use(c *Client)
}

// Options of the client. Zero values mean the defaults in brackets.
type Options struct {
	// PollInterval is how long an entry can wait when its notice was lost [1s]. Each queue asks by itself, so a short one costs
	// much with many providers. SQLite has notices too: a table of River's, which one statement looks into every 50 ms.
	PollInterval time.Duration
	Logger       *slog.Logger // [slog.Default()]
}

// rescueAfter is how old a running entry must be before River looks whether its process died. An entry of a kind whose
// workers may take longer is left alone until that time is over.
const rescueAfter = time.Minute

// Open returns a client that takes entries of the parts at once; they are worked on after it is started.
func Open(s *store.Store, o Options, parts ...Part) (*Client, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	var driver riverdriver.Driver[*sql.Tx]
	if s.Postgres() {
		driver = riverdatabasesql.NewWithPgxListener(s.DB(), s.Direct())
	} else {
		driver = riversqlite.New(s.DB())
	}
	if o.PollInterval == 0 {
		o.PollInterval = time.Second
	}
	workers, queues := river.NewWorkers(), map[string]river.QueueConfig{}
	for _, p := range parts {
		own, err := p.Register(workers)
		if err != nil {
			return nil, fmt.Errorf("queue: %w", err)
		}
		for name, config := range own {
			if config.MaxWorkers > 0 {
				queues[name] = config
			}
		}
	}
	client, err := river.NewClient(driver, &river.Config{
		Queues:            queues,
		Workers:           workers,
		FetchCooldown:     5 * time.Millisecond, // the default of 100 ms would be a ceiling on throughput
		FetchPollInterval: o.PollInterval,
		// An entry gets one try unless whoever adds it says otherwise.
		MaxAttempts:                 1,
		RescueStuckJobsAfter:        rescueAfter,
		CompletedJobRetentionPeriod: time.Hour,
		Logger:                      slog.New(quiet{o.Logger.Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	for _, p := range parts {
		p.Use(client)
	}
	return client, nil
}

// quiet lets only River's warnings and errors through.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

func (q quiet) WithAttrs(as []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(as)} }
func (q quiet) WithGroup(name string) slog.Handler    { return quiet{q.Handler.WithGroup(name)} }
