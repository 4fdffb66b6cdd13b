package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// How often and how long a scrape may ask the database.
const (
	backlogAge     = 5 * time.Second
	backlogTimeout = 2 * time.Second
)

// Backlog counts what waits for a person, over the whole database and not for this process alone.
type Backlog struct {
	Unknown map[string]int // UNKNOWN attempts, by provider
	Waiting int            // WAITING jobs
}

// WatchBacklog adds gauges that read counts when they are scraped, at most every five seconds, and for at most two. For
// the given providers there is a number always. While read fails there is none: an old number would look like a fresh one.
//
// The labels are as many as there are providers; no job, attempt or owner is one.
func (m *Metrics) WatchBacklog(providers []string, read func(context.Context) (Backlog, error), log *slog.Logger) {
	m.registry.MustRegister(&backlog{
		providers: providers, read: read, log: log,
		unknown: prometheus.NewDesc("docket_attempts_unknown",
			"Attempts that are UNKNOWN, in the whole database: nobody can tell what the provider does.", []string{"provider"}, nil),
		waiting: prometheus.NewDesc("docket_jobs_waiting",
			"Jobs that are WAITING, in the whole database: nothing is in flight and the owner decides.", nil, nil),
	})
}

type backlog struct {
	providers        []string
	read             func(context.Context) (Backlog, error)
	log              *slog.Logger
	unknown, waiting *prometheus.Desc

	mu   sync.Mutex // one scrape asks, the others wait for its answer
	at   time.Time
	last Backlog
	err  error
}

func (b *backlog) Describe(ch chan<- *prometheus.Desc) {
	ch <- b.unknown
	ch <- b.waiting
}

func (b *backlog) Collect(ch chan<- prometheus.Metric) {
	counts, err := b.counts()
	if err != nil {
		return
	}
	byProvider := make(map[string]int, len(b.providers))
	for _, p := range b.providers {
		byProvider[p] = 0
	}
	for p, n := range counts.Unknown { // also of providers that are not configured any more
		byProvider[p] = n
	}
	for p, n := range byProvider {
		ch <- prometheus.MustNewConstMetric(b.unknown, prometheus.GaugeValue, float64(n), p)
	}
	ch <- prometheus.MustNewConstMetric(b.waiting, prometheus.GaugeValue, float64(counts.Waiting))
}

// counts keeps failures for as long as answers, so that scrapes do not pile up before a database that is down.
func (b *backlog) counts() (Backlog, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.at.IsZero() && time.Since(b.at) < backlogAge {
		return b.last, b.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout) // a scrape hands no context on
	defer cancel()
	b.last, b.err = b.read(ctx)
	b.at = time.Now()
	if b.err != nil {
		b.log.WarnContext(ctx, "count what waits for a person", "error", b.err)
	}
	return b.last, b.err
}
