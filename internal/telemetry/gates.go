package telemetry

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// Gates is what the contract gate says. Changes are of the whole database, so that those which a command made count too.
type Gates struct {
	Open    []GateOpen
	Changes []GateChanges
}

// GateOpen says whether a target may stand in for a task's primary, for the task's current version in this process.
type GateOpen struct {
	Task, Target string
	Open         bool
}

// GateChanges is how often a gate came to a state.
type GateChanges struct {
	Task, Target, State string
	Count               int
}

// WatchGates adds metrics that read what the gates say when they are scraped, at most every five seconds, and for at most two.
// While read fails there is none: an old answer would look like a fresh one.
//
// The labels are as many as the configured tasks have targets on their routes; the changes keep those of earlier ones.
func (m *Metrics) WatchGates(read func(context.Context) (Gates, error), log *slog.Logger) {
	m.registry.MustRegister(&gates{
		read: &reading[Gates]{what: "what the gates say", read: read, log: log},
		open: prometheus.NewDesc("docket_gate_open",
			"Whether the target may stand in for the task's primary now: 1 if its contract passed and nothing changed since, else 0.", []string{"task", "target"}, nil),
		changes: prometheus.NewDesc("docket_gate_changes_total",
			"Changes of what the gate says, by the state that it came to, in the whole database: the same in every process.", []string{"task", "target", "state"}, nil),
	})
}

type gates struct {
	read          *reading[Gates]
	open, changes *prometheus.Desc
}

func (g *gates) Describe(ch chan<- *prometheus.Desc) {
	ch <- g.open
	ch <- g.changes
}

func (g *gates) Collect(ch chan<- prometheus.Metric) {
	all, err := g.read.get()
	if err != nil {
		return
	}
	for _, o := range all.Open {
		v := 0.0
		if o.Open {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(g.open, prometheus.GaugeValue, v, o.Task, o.Target)
	}
	for _, c := range all.Changes {
		ch <- prometheus.MustNewConstMetric(g.changes, prometheus.CounterValue, float64(c.Count), c.Task, c.Target, c.State)
	}
}
