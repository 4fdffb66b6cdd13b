package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// How often and how long a scrape may ask the database.
const (
	readingAge     = 5 * time.Second
	readingTimeout = 2 * time.Second
)

// reading is what scrapes read from the database: at most every five seconds, and for at most two. One scrape asks, the others
// wait for its answer. Failures are kept for as long as answers, so that scrapes do not pile up before a database that is down.
type reading[T any] struct {
	what string
	read func(context.Context) (T, error)
	log  *slog.Logger

	mu   sync.Mutex
	at   time.Time
	last T
	err  error
}

func (r *reading[T]) get() (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < readingAge {
		return r.last, r.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readingTimeout) // a scrape hands no context on
	defer cancel()
	r.last, r.err = r.read(ctx)
	r.at = time.Now()
	if r.err != nil {
		r.log.WarnContext(ctx, "read for the metrics", "what", r.what, "error", r.err)
	}
	return r.last, r.err
}
