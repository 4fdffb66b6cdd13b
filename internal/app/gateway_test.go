package app

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/logtest"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/providers/providertest"
)

func TestRefusesToListenBeyondLoopback(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0"} {
		cfg := defaults(t)
		cfg.Listen = listen
		_, err := Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
		require.ErrorIs(t, err, auth.ErrNotLoopback, listen)
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	g := serve(t, defaults(t))
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		status, body := get(t, g.addr, path)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, want, body)
	}
	status, body := get(t, g.addr, "/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "docket_races_lost_total 0")
	require.Contains(t, body, "go_goroutines")
	status, body = get(t, g.addr, "/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "<!doctype html>")
}

// TestTheRouteGoesOnToTheProvenFallback: the inkjet jams and the laser, proven at start, prints.
func TestTheRouteGoesOnToTheProvenFallback(t *testing.T) {
	t.Parallel()
	g := serve(t, defaults(t))
	becomes(t, g.addr, job(t, g.addr, "k", ""), `"attempts":[{"target":"demo/inkjet","reason":"PRIMARY","state":"FAILED","error":{"code":"JAMMED"}},`+
		`{"target":"demo/laser","reason":"FALLBACK","state":"SUCCEEDED","error":null}]`)
}

// TestRunsWithoutWhatLacksAKey: the provider is named with its models and what is missing, and the others serve.
func TestRunsWithoutWhatLacksAKey(t *testing.T) {
	t.Parallel()
	cfg := defaults(t)
	cfg.Providers = append(cfg.Providers, config.Provider{Name: "remote", Kind: config.KindOpenAI, BaseURL: "https://api.example.com/v1",
		APIKeyEnv: "DOCKET_TEST_NO_SUCH_KEY", Models: []config.Model{{Name: "m"}, {Name: "n"}}})
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	left, err := usable(t.Context(), cfg, log)
	require.NoError(t, err)
	require.Contains(t, out.String(), `level=WARN msg="provider left out" provider=remote kind=openai models="[m n]" missing="providers[1].api_key_env: the environment variable DOCKET_TEST_NO_SUCH_KEY is not set"`)
	require.Contains(t, out.String(), `level=INFO msg=provider provider=demo kind=demo models="[inkjet laser fax]"`)
	require.Len(t, left.Providers, 1)

	g := serve(t, cfg)
	becomes(t, g.addr, job(t, g.addr, "k", ""), `"attempts":[{"target":"demo/inkjet","reason":"PRIMARY","state":"FAILED","error":{"code":"JAMMED"}},`+
		`{"target":"demo/laser","reason":"FALLBACK","state":"SUCCEEDED","error":null}]`)

	gemini := config.Provider{Name: "g", Kind: config.KindGemini, BaseURL: "https://api.example.com", APIKey: config.NewSecret("sk-0123456789ab"),
		AckTimeout: await.Patience, IdleTimeout: await.Patience, TotalTimeout: await.Patience, MaxConcurrency: 1, Models: []config.Model{{Name: "a:b"}}}
	wrong := *cfg
	wrong.Providers = append(slices.Clone(cfg.Providers), gemini)
	_, err = Start(t.Context(), &wrong, log)
	require.ErrorContains(t, err, "providers[2].models[0].name", "the place in the file, whoever was left out before it")

	cfg.Providers = cfg.Providers[1:]
	_, err = Start(t.Context(), cfg, log)
	require.ErrorContains(t, err, "no provider can be used: providers[0].api_key_env")
}

// TestStopsInGoodOrderBesideAClientThatSaysNothing: net/http waits for a connection on which no request has come.
func TestStopsInGoodOrderBesideAClientThatSaysNothing(t *testing.T) {
	t.Parallel()
	g := serve(t, defaults(t))
	for _, said := range []string{"", "POST /graphql HTTP/1.1\r\nHost: x\r\n"} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", g.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = conn.Write([]byte(said))
		require.NoError(t, err)
	}
	_, _ = get(t, g.addr, "/healthz") // the connections were accepted before this one
	require.NoError(t, g.stop())
	require.Contains(t, g.log.String(), "connections are cut")
}

func TestShowsItsCircuits(t *testing.T) {
	t.Parallel()
	fake, url := providertest.Start(t)
	fake.OnModel("m", providertest.Error(503, "down"))
	cfg := defaults(t)
	cfg.Providers = append(cfg.Providers, config.Provider{Name: "local", Kind: config.KindOpenAICompatible, BaseURL: url,
		AckTimeout: await.Patience, IdleTimeout: await.Patience, TotalTimeout: await.Patience, MaxConcurrency: 1, Models: []config.Model{{Name: "m"}},
		CircuitBreaker: config.CircuitBreaker{Failures: 1, OpenFor: time.Hour}})
	g := serve(t, cfg)
	_, body := get(t, g.addr, "/metrics")
	require.Contains(t, body, `docket_circuit_state{target="local/m"} 0`)
	require.NotContains(t, body, `docket_circuit_state{target="demo/fax"}`, "it is off")
	becomes(t, g.addr, job(t, g.addr, "k", "local/m"), `"error":{"code":"CIRCUIT_OPEN"}`)
	require.Len(t, fake.Log(), 1)
	_, body = get(t, g.addr, "/metrics")
	require.Contains(t, body, `docket_circuit_state{target="local/m"} 2`)
	require.Contains(t, body, `docket_circuit_refusals_total{target="local/m"} 1`)
	require.Regexp(t, `level=WARN msg="circuit breaker" target=local/m from=closed to=open`, g.log.String())
}

func TestIsNotReadyWhileItStops(t *testing.T) {
	t.Parallel()
	fake, url := providertest.Start(t)
	fake.OnModel("m", providertest.AckThenHold())
	cfg := defaults(t)
	cfg.Providers = append(cfg.Providers, config.Provider{Name: "local", Kind: config.KindOpenAICompatible, BaseURL: url,
		AckTimeout: await.Patience, IdleTimeout: await.Patience, TotalTimeout: await.Patience, MaxConcurrency: 1, Models: []config.Model{{Name: "m"}}})
	g := serve(t, cfg)
	g.bound = await.Patience
	id := job(t, g.addr, "k", "local/m")
	becomes(t, g.addr, id, `"state":"RUNNING"`)

	stopped := make(chan error, 1)
	go func() { stopped <- g.stop() }()
	await.Until(t, "it is not ready any more", g.unready(t))
	status, _ := get(t, g.addr, "/healthz")
	require.Equal(t, http.StatusOK, status, "it lives until it is drained")
	require.Contains(t, query(t, g.addr, `query($id: ID!) { job(id: $id) { state } }`, map[string]any{"id": id}), "RUNNING")

	fake.Release()
	require.NoError(t, <-stopped)
	require.Len(t, fake.Log(), 1)
	_, err := client.Get("http://" + g.addr + "/healthz") //nolint:noctx // nobody answers
	require.Error(t, err)

	cfg.Listen = "127.0.0.1:0"
	next := serve(t, cfg)
	becomes(t, next.addr, id, `"state":"SUCCEEDED"`)
}

// TestAnswersWhileALoadBalancerHasNotNoticed: it is idle, so nothing else would keep it.
func TestAnswersWhileALoadBalancerHasNotNoticed(t *testing.T) {
	t.Parallel()
	cfg := defaults(t)
	cfg.ShutdownDelay = 8 * time.Second // the answer below comes within it, also on a loaded machine
	g := serve(t, cfg)
	g.bound = await.Patience
	asked := time.Now()
	stopped := make(chan error, 1)
	go func() { stopped <- g.stop() }()
	await.Until(t, "it is not ready any more", g.unready(t))
	require.Contains(t, job(t, g.addr, "k", ""), "job_", "what comes now is taken too")
	require.NoError(t, <-stopped)
	require.GreaterOrEqual(t, time.Since(asked), cfg.ShutdownDelay)
}

func TestDelaysNoLongerThanItMayTake(t *testing.T) {
	t.Parallel()
	cfg := defaults(t)
	cfg.ShutdownDelay = time.Hour
	g := serve(t, cfg)
	require.NoError(t, g.stop())
}

func TestStreamsEndWhenItStops(t *testing.T) {
	t.Parallel()
	g := serve(t, defaults(t))
	id := job(t, g.addr, "k", "demo/fax")
	becomes(t, g.addr, id, `"state":"RUNNING"`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.addr+"/graphql?query=subscription%7BjobEvents(jobId:%22"+id+"%22)%7Bnumber%7D%7D", nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	begin := time.Now()
	require.NoError(t, g.stop())
	require.Less(t, time.Since(begin), 20*time.Second)
	for buf := make([]byte, 4096); err == nil; {
		_, err = resp.Body.Read(buf)
	}
}

// A process that cannot be reached is not to live on as if it served.
func TestEndsWithAnErrorWhenItDoesNotListenAnyMore(t *testing.T) {
	t.Parallel()
	log := &logtest.Buffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	g, err := Start(t.Context(), defaults(t), logger)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- (&program{}).wait(t.Context(), g, logger) }()
	require.NoError(t, g.listener.Close())
	require.ErrorIs(t, await.Receive(t, "its end", ended), net.ErrClosed)
	require.False(t, g.ready.Load())
	require.Contains(t, log.String(), "level=ERROR")
}

func TestReadyzAsksTheDatabase(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "docket.db"))
	require.NoError(t, err)
	g := &Gateway{parts: &parts{store: s}}
	ready := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		g.readyz(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		return w
	}
	require.Equal(t, http.StatusServiceUnavailable, ready().Code, "not started yet")
	g.ready.Store(true)
	require.Equal(t, http.StatusOK, ready().Code)
	require.NoError(t, s.Close())
	require.Equal(t, http.StatusServiceUnavailable, ready().Code)
	require.Contains(t, ready().Body.String(), "the database does not answer")
}

// TestWarnsOfARouteThatLeadsNowhere: the shipped tasks start at the inkjet, which this machine does not have.
func TestWarnsOfARouteThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	cfg := defaults(t)
	cfg.Providers[0].Models = cfg.Providers[0].Models[1:2]
	g := serve(t, cfg)
	require.Regexp(t, `level=WARN msg="a task's route names a target that is not configured" task=triage target=demo/inkjet`, g.log.String())

	input := map[string]any{"idempotencyKey": "k", "task": "triage", "input": map[string]any{"text": "a"}}
	require.Contains(t, query(t, g.addr, create, map[string]any{"input": input}), `"issues":[{"path":"/target","message":"is required here`)
	becomes(t, g.addr, job(t, g.addr, "k", "demo/laser"), `"state":"SUCCEEDED"`) // the key was not used up
}
