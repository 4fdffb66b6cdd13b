package telemetry

import "github.com/prometheus/client_golang/prometheus"

// WatchCircuits adds a gauge of every circuit breaker's state in this process: 0 is closed, 1 half-open, 2 open. read is
// asked when the metrics are scraped and gives the states by target.
func (m *Metrics) WatchCircuits(read func() map[string]int) {
	m.registry.MustRegister(&circuits{read: read, state: prometheus.NewDesc("docket_circuit_state",
		"State of the target's circuit breaker in this process: 0 closed, 1 half-open, 2 open.", []string{"target"}, nil)})
}

type circuits struct {
	read  func() map[string]int
	state *prometheus.Desc
}

func (c *circuits) Describe(ch chan<- *prometheus.Desc) { ch <- c.state }

func (c *circuits) Collect(ch chan<- prometheus.Metric) {
	for target, state := range c.read() {
		ch <- prometheus.MustNewConstMetric(c.state, prometheus.GaugeValue, float64(state), target)
	}
}
