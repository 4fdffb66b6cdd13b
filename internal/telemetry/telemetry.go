// Package telemetry builds the logger and holds the metrics that operators watch.
//
// It imports nothing of this module.
package telemetry

import (
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewLogger writes text or JSON lines from a level on.
func NewLogger(w io.Writer, level slog.Level, json bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// Metrics is one process's metrics.
type Metrics struct {
	registry  *prometheus.Registry
	racesLost prometheus.Counter
	settled   *prometheus.CounterVec
	webhooks  *prometheus.CounterVec
	refused   *prometheus.CounterVec
	cancelled *prometheus.CounterVec
}

// NewMetrics returns metrics with a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		racesLost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "docket_races_lost_total",
			Help: "Outcomes that came for an attempt or a job that was already settled, and were dropped.",
		}),
		settled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "docket_attempts_settled_total",
			Help: "Attempts that this process ended, by terminal state and by whom: worker, callback, operator or owner.",
		}, []string{"state", "via"}),
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "docket_webhook_tries_total",
			Help: "Tries to deliver a completion webhook, by what came of them: delivered, retried, gone or abandoned.",
		}, []string{"result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "docket_circuit_refusals_total",
			Help: "Attempts that this process did not send because their target's circuit was open.",
		}, []string{"target"}),
		cancelled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "docket_provider_cancellations_total",
			Help: "Tries to end a request at its provider that was of no use any more, by what came of them: taken or failed.",
		}, []string{"target", "result"}),
	}
	m.registry.MustRegister(m.racesLost, m.settled, m.webhooks, m.refused, m.cancelled, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// RaceLost counts an outcome that was dropped.
func (m *Metrics) RaceLost() { m.racesLost.Inc() }

// AttemptSettled counts an attempt that ended. There are few states and few ways.
func (m *Metrics) AttemptSettled(state, via string) { m.settled.WithLabelValues(state, via).Inc() }

// WebhookTried counts one try to deliver a completion webhook.
func (m *Metrics) WebhookTried(result string) { m.webhooks.WithLabelValues(result).Inc() }

// CircuitRefused counts an attempt that was not sent because its target's circuit was open. Targets are configured, so
// there are few.
func (m *Metrics) CircuitRefused(target string) { m.refused.WithLabelValues(target).Inc() }

// Cancelled counts one try to end a request at its provider.
func (m *Metrics) Cancelled(target string, ok bool) {
	result := "failed"
	if ok {
		result = "taken"
	}
	m.cancelled.WithLabelValues(target, result).Inc()
}

// Handler serves the metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
