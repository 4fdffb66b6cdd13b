package telemetry

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
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
		providers: providers, read: &reading[Backlog]{what: "what waits for a person", read: read, log: log},
		unknown: prometheus.NewDesc("docket_attempts_unknown",
			"Attempts that are UNKNOWN, in the whole database: nobody can tell what the provider does.", []string{"provider"}, nil),
		waiting: prometheus.NewDesc("docket_jobs_waiting",
			"Jobs that are WAITING, in the whole database: nothing is in flight and the owner decides.", nil, nil),
	})
}

type backlog struct {
	providers        []string
	read             *reading[Backlog]
	unknown, waiting *prometheus.Desc
}

func (b *backlog) Describe(ch chan<- *prometheus.Desc) {
	ch <- b.unknown
	ch <- b.waiting
}

func (b *backlog) Collect(ch chan<- prometheus.Metric) {
	counts, err := b.read.get()
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
