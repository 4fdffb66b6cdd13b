package benchmark

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/program"
)

var (
	sockets   = flag.Int("sockets", 5000, "how many sockets are open, each with a subscription of its own job")
	rate      = flag.Int("rate", 100, "how many jobs change in a second")
	elsewhere = flag.Bool("elsewhere", false, "let another process make the changes, so that each goes through PostgreSQL's notices")
)

// BenchmarkSockets runs the gateway as a program of its own; the clients of all sockets are this process. A job's change is
// its cancellation, whose events the subscription delivers. Latency is counted from the event's own time, which is taken
// before the commit: what is reported is a little more than from commit to delivery.
func BenchmarkSockets(b *testing.B) {
	for range b.N {
		measureSockets(b)
	}
}

func measureSockets(b *testing.B) {
	b.Helper()
	path, err := program.Build(b.Context(), b.TempDir())
	require.NoError(b, err)
	config := holeConfig(b, databases.DSN(b))
	gateway := runGateway(b, path, config)
	writer := gateway
	if *elsewhere {
		writer = runGateway(b, path, config)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()

	ids := make([]string, *sockets)
	parallel(b, 32, *sockets, func(i int) (err error) {
		ids[i], err = createOf(b.Context(), client, writer.URL, i)
		return err
	})
	idle := residentKiB(b, gateway)
	latencies := make([]time.Duration, *sockets)
	var readers sync.WaitGroup
	failures := make(chan error, 2**sockets)
	opened := time.Now()
	parallel(b, 64, *sockets, func(i int) error {
		conn, err := subscribe(b.Context(), gateway.URL, i, ids[i])
		if err != nil {
			return err
		}
		readers.Go(func() { // at once: pings want an answer
			defer func() { _ = conn.CloseNow() }()
			var err error
			if latencies[i], err = delivered(b.Context(), conn); err != nil {
				failures <- fmt.Errorf("socket %d: %w", i, err)
			}
		})
		return nil
	})
	b.ReportMetric(float64(*sockets)/time.Since(opened).Seconds(), "connects/s")
	full := residentKiB(b, gateway)
	var changes sync.WaitGroup
	pace := time.NewTicker(time.Second / time.Duration(*rate))
	defer pace.Stop()
	for i := range ids {
		<-pace.C
		changes.Go(func() {
			if err := cancelOf(b.Context(), client, writer.URL, i, ids[i]); err != nil {
				failures <- err
			}
		})
	}
	changes.Wait()
	readers.Wait()
	close(failures)
	for err := range failures {
		require.NoError(b, err)
	}
	slices.Sort(latencies)
	at := func(share float64) float64 {
		return float64(latencies[int(share*float64(len(latencies)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(float64(full-idle)/float64(*sockets), "KiB/socket")
	b.ReportMetric(at(0.5), "p50_ms")
	b.ReportMetric(at(0.99), "p99_ms")
	b.ReportMetric(at(1), "max_ms")
	b.ReportMetric(0, "ns/op")
}

// holeConfig is a gateway's whose one provider takes a request and never answers: all jobs but one wait in the queue.
func holeConfig(b *testing.B, database string) string {
	b.Helper()
	hole, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, hole.Close()) })
	file := filepath.Join(b.TempDir(), "docket.yaml")
	require.NoError(b, os.WriteFile(file, fmt.Appendf(nil, `
listen: 127.0.0.1:0
database: %q
shutdown_timeout: 1s
log: {format: json}
providers:
  - name: hole
    kind: openai-compatible
    base_url: http://%s/v1
    ack_timeout: 10m
    idle_timeout: 10m
    total_timeout: 1h
    max_concurrency: 1
    models: [{name: m}]
`, database, hole.Addr()), 0o600))
	return file
}

func runGateway(b *testing.B, path, config string) *program.Process {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), await.Patience)
	defer cancel()
	p, err := program.Start(ctx, program.Command{Path: path, Dir: b.TempDir(), Args: []string{"serve", "--config", config}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, p.Kill()) })
	return p
}

func parallel(b *testing.B, workers, n int, do func(i int) error) {
	b.Helper()
	todo := make(chan int)
	errs := make(chan error, workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range todo {
				if err := do(i); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	wg.Wait()
	close(errs)
	require.NoError(b, <-errs)
}

func bearer(i int) string { return "Bearer dev:user-" + strconv.Itoa(i) }

func ask(ctx context.Context, client *http.Client, url string, i int, query string, variables any) ([]byte, error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", bearer(i))
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func createOf(ctx context.Context, client *http.Client, url string, i int) (string, error) {
	answer, err := ask(ctx, client, url, i, mutation, map[string]any{"i": map[string]any{
		"idempotencyKey": "k", "task": "triage", "target": "hole/m", "input": map[string]string{"text": text},
	}})
	if err != nil {
		return "", err
	}
	var out struct {
		Data struct {
			CreateJob struct{ Job struct{ ID string } }
		}
	}
	if err := json.Unmarshal(answer, &out); err != nil || out.Data.CreateJob.Job.ID == "" {
		return "", fmt.Errorf("not created: %s", answer)
	}
	return out.Data.CreateJob.Job.ID, nil
}

func cancelOf(ctx context.Context, client *http.Client, url string, i int, id string) error {
	answer, err := ask(ctx, client, url, i, `mutation ($i: CancelJobInput!) { cancelJob(input: $i) { __typename } }`,
		map[string]any{"i": map[string]string{"jobId": id}})
	if err == nil && !bytes.Contains(answer, []byte("CancelJobSuccess")) {
		err = fmt.Errorf("not cancelled: %s", answer)
	}
	return err
}

type frame struct {
	ID      string         `json:"id,omitempty"`
	Type    string         `json:"type"`
	Payload map[string]any `json:"payload,omitempty"`
}

// subscribe returns once the job's first events have come: the subscription waits for more then.
func subscribe(ctx context.Context, url string, i int, id string) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(ctx, url+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return nil, err
	}
	for _, f := range []frame{
		{Type: "connection_init", Payload: map[string]any{"Authorization": bearer(i)}},
		{ID: "1", Type: "subscribe", Payload: map[string]any{
			"query":     `subscription ($id: ID!) { jobEvents(jobId: $id) { number type at } }`,
			"variables": map[string]string{"id": id},
		}},
	} {
		if err := wsjson.Write(ctx, conn, f); err != nil {
			return nil, err
		}
	}
	for nexts := 0; nexts < 2; {
		var f frame
		if err := wsjson.Read(ctx, conn, &f); err != nil {
			return nil, err
		}
		if f.Type == "next" {
			nexts++
		}
	}
	return conn, nil
}

// delivered is how long after its own time the next event came.
func delivered(ctx context.Context, conn *websocket.Conn) (time.Duration, error) {
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return 0, err
		}
		now := time.Now()
		var f struct {
			Type    string
			Payload struct {
				Data struct{ JobEvents struct{ At time.Time } }
			}
		}
		if err := json.Unmarshal(text, &f); err != nil {
			return 0, err
		}
		switch f.Type {
		case "next":
			return now.Sub(f.Payload.Data.JobEvents.At), nil
		case "ping":
			if err := wsjson.Write(ctx, conn, frame{Type: "pong"}); err != nil {
				return 0, err
			}
		default:
			return 0, fmt.Errorf("unexpected: %s", text)
		}
	}
}

// residentKiB is the memory that the kernel counts for the process, garbage that Go has not returned yet included.
func residentKiB(b *testing.B, p *program.Process) int {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	require.NoError(b, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(b, err)
			return kib
		}
	}
	b.Fatal("the kernel tells no VmRSS")
	return 0
}
