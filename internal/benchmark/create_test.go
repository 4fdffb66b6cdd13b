// Package benchmark measures the hot path: createJob through HTTP, against the same SQL statements without Docket.
package benchmark

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/graph"
	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/dispatch"
	"github.com/docket-gateway/docket/internal/events"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/pgtest"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/telemetry"
	"github.com/docket-gateway/docket/providers"
)

var databases = pgtest.New()

func TestMain(m *testing.M) { databases.Main(m) }

// clients is how many requests are under way at once.
var clients = []int{1, 16, 64}

func BenchmarkCreateJob(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) {
		create(b, "sqlite://"+filepath.Join(b.TempDir(), "docket.db"), "sqlite://"+filepath.Join(b.TempDir(), "bare.db"))
	})
	b.Run("PostgreSQL", func(b *testing.B) { create(b, databases.DSN(b), databases.DSN(b)) })
}

// create runs both sides in one run and reports their ratio: these machines are noisy, and a figure alone says little.
func create(b *testing.B, address, bareAddress string) {
	b.Helper()
	server := serve(b, address)
	bare := newBare(b, bareAddress)
	for _, n := range clients {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.ResetTimer()
			through := inParallel(b, n, func(i int64) error { return post(server, i) })
			b.StopTimer()
			direct := inParallel(b, n, bare.create)
			b.ReportMetric(float64(b.N)/through.Seconds(), "http_ops/s")
			b.ReportMetric(float64(b.N)/direct.Seconds(), "bare_ops/s")
			b.ReportMetric(direct.Seconds()/through.Seconds(), "http/bare")
		})
	}
}

// serial numbers the keys over all runs.
var serial atomic.Int64

func inParallel(b *testing.B, n int, op func(i int64) error) time.Duration {
	b.Helper()
	var todo atomic.Int64
	todo.Store(int64(b.N))
	errs := make(chan error, n)
	var wg sync.WaitGroup
	start := time.Now()
	for range n {
		wg.Go(func() {
			for todo.Add(-1) >= 0 {
				if err := op(serial.Add(1)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	close(errs)
	for err := range errs {
		require.NoError(b, err)
	}
	return took
}

type known struct{}

func (known) Known(string) bool       { return true }
func (known) Targets() []graph.Target { return nil }

// serve is the endpoint without workers: what is measured is creating, not working.
func serve(b *testing.B, address string) *httptest.Server {
	b.Helper()
	s := open(b, address)
	suites, err := contracts.LoadSuites(contracts.ShippedTasks())
	require.NoError(b, err)
	var defs []*tasks.Definition
	for _, suite := range suites {
		defs = append(defs, suite.Task)
	}
	catalog, err := tasks.NewCatalog(defs...)
	require.NoError(b, err)
	log := slog.New(slog.DiscardHandler)
	registry, err := providers.NewRegistry(nil, nil)
	require.NoError(b, err)
	attempts := dispatch.NewQueue(dispatch.QueueOptions{Registry: registry, Logger: log})
	_, err = queue.Open(s, queue.Options{Logger: log}, attempts)
	require.NoError(b, err)
	hub := events.NewHub()
	service := jobs.New(jobs.Deps{
		Store: s, Catalog: catalog, Queue: attempts, Gate: closed{}, Targets: known{}, Notifier: hub,
		Metrics: telemetry.NewMetrics(), Logger: log,
	}, jobs.Options{})
	guard := auth.NewDevGuard()
	server := httptest.NewServer(guard.Handler(graph.NewHandler(graph.NewResolver(graph.Deps{
		Client: s.Client(), Jobs: service, Catalog: catalog, Targets: known{},
		Follower: &events.Follower{Client: s.Client(), Hub: hub},
		Gate: func(ctx context.Context, t *tasks.Definition, target string) (gate.Decision, error) {
			return gate.Decision{}, nil
		},
	}), guard, graph.Options{Logger: log})))
	server.Config.SetKeepAlivesEnabled(true)
	server.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 128
	b.Cleanup(server.Close)
	return server
}

type closed struct{ jobs.Gate }

func open(b *testing.B, address string) *store.Store {
	b.Helper()
	s, err := store.Open(b.Context(), address)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	require.NoError(b, s.Migrate(b.Context()))
	return s
}

const mutation = `mutation ($i: CreateJobInput!) { createJob(input: $i) { ... on CreateJobSuccess { replayed job { id state } } ... on UserError { code message } } }`

// text is an ordinary support message.
const text = "I was charged twice for order 1041, please refund the second payment."

func post(server *httptest.Server, i int64) error {
	body, err := json.Marshal(map[string]any{"query": mutation, "variables": map[string]any{"i": map[string]any{
		"idempotencyKey": "bench-" + strconv.FormatInt(i, 10), "task": "triage", "input": map[string]string{"text": text},
	}}})
	if err != nil {
		return err
	}
	resp, err := server.Client().Post(server.URL+"/graphql", "application/json", bytes.NewReader(body)) //nolint:noctx // a benchmark
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, []byte(`"replayed":false`)) {
		return fmt.Errorf("not created: %s", answer)
	}
	return nil
}
