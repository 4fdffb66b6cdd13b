package acceptance

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/app"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/goldens"
	"github.com/docket-gateway/docket/internal/logtest"
	"github.com/docket-gateway/docket/providers/providertest"
)

// The provider's targets. All answer well unless a test scripts them.
const (
	primary = "fake/primary"
	second  = "fake/second"
	third   = "fake/third"
)

// settings are a gateway's. The zero values of all but database are good for most tests.
type settings struct {
	database string
	url      string        // of the provider
	tasks    string        // folder [echo, and strict, which forbids races]
	ack      time.Duration // [2m]
	linger   time.Duration // [3m]
	lease    time.Duration // [2m: a starved worker still renews it; the sweep, which runs three times a lease, wants a shorter one]
	shutdown time.Duration // [5s]
	places   int           // requests at the provider at once, for each gateway [16]
	more     string        // further providers, as YAML
}

// write makes a configuration file.
func (s settings) write(t *testing.T) string {
	t.Helper()
	if s.tasks == "" {
		s.tasks = writeTasks(t)
	}
	for value, standard := range map[*time.Duration]time.Duration{
		&s.ack: 2 * time.Minute, &s.linger: await.Patience, &s.lease: 2 * time.Minute, &s.shutdown: 5 * time.Second,
	} {
		if *value == 0 {
			*value = standard
		}
	}
	if s.places == 0 {
		s.places = 16
	}
	path := filepath.Join(t.TempDir(), "docket.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
listen: 127.0.0.1:0
database: %q
tasks: [%q]
lease: %s
shutdown_timeout: %s
log: {format: json}
providers:
  - name: fake
    kind: openai-compatible
    base_url: %s
    ack_timeout: %s
    idle_timeout: 10m
    total_timeout: 20m
    linger: %s
    max_concurrency: %d
    models: [{name: primary}, {name: second}, {name: third}]
%s`, s.database, s.tasks, s.lease, s.shutdown, s.url, s.ack, s.linger, s.places, s.more), 0o600))
	return path
}

// writeTasks makes a folder of two tasks: echo may race, strict may not. Neither retries by itself.
func writeTasks(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeTask(t, dir, "echo", "allowed")
	writeTask(t, dir, "strict", "forbidden")
	writeGoldens(t, dir)
	return dir
}

func writeTask(t *testing.T, dir, name, race string) {
	t.Helper()
	folder := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "cases"), 0o700))
	for file, text := range map[string]string{
		"task.yaml": "name: " + name + "\nversion: \"1\"\ntarget: fake/primary\nfallbacks: [fake/second]\nrace: " + race +
			"\nretry: {max: 0, base: 10ms, cap: 1s}\ncontract: {runs: 1}\n",
		"input.schema.json": `{"type": "object", "properties": {"text": {"type": "string"}}}`,
		"output.schema.json": `{"type": "object", "additionalProperties": false, "required": ["text"],
			"properties": {"text": {"type": "string", "minLength": 1}}}`,
		"system.tmpl":     "Answer with JSON: {{.Schema}}\n",
		"prompt.tmpl":     "{{json .Input}}\n",
		"cases/one.json":  `{"input": {"text": "one"}, "assert": ["output.text != ''"]}`,
		"cases/more.json": `{"input": {"text": "two", "n": 2}, "assert": ["output.text != ''"]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
	}
}

// writeGoldens is for tasks whose answers hold a text.
func writeGoldens(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, goldens.Write(dir, []byte(`{"text": "x"}`), "fake/primary", second, "fake/third"))
}

// gateway is a running one in this process, and a client of it.
type gateway struct {
	*client

	config string // the file
	log    *logtest.Buffer
	stop   func()
}

// start runs a gateway until the test ends.
func (s settings) start(t *testing.T) *gateway {
	t.Helper()
	path := s.write(t)
	cfg, err := config.Load(path, nil)
	require.NoError(t, err)
	g := startWith(t, cfg)
	g.config = path
	return g
}

func startWith(t *testing.T, cfg *config.Config) *gateway {
	t.Helper()
	log := &logtest.Buffer{}
	g, err := app.Start(t.Context(), cfg, slog.New(slog.NewJSONHandler(log, nil)))
	require.NoError(t, err)
	stop := sync.OnceFunc(func() {
		// What tests leave hanging is cut off.
		bound, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 50*time.Millisecond)
		defer cancel()
		if err := g.Stop(bound); err != nil {
			t.Errorf("stop the gateway: %v", err)
		}
	})
	t.Cleanup(stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", log)
		}
	})
	return &gateway{client: newClient(t, g.Addr()), log: log, stop: stop}
}

// newGateway is a gateway with a provider of its own.
func newGateway(t *testing.T, s settings) (*gateway, *fake) {
	t.Helper()
	f := startFake(t)
	s.url = f.url
	return s.start(t), f
}

// prove runs the contracts of the task at the target, as an operator does by hand, and they pass.
func prove(t *testing.T, configFile, task, target string) {
	t.Helper()
	require.Zero(t, contractsRun(t, configFile, task, target))
}

func contractsRun(t *testing.T, configFile, task, target string) (exitCode int) {
	t.Helper()
	var out, errs bytes.Buffer
	code := app.Main([]string{"contracts", "run", "--config", configFile, "--task", task, "--target", target}, nil, &out, &errs)
	t.Logf("contracts run: %d\n%s\n%s", code, out.String(), errs.String())
	return code
}

// fake is the provider, with its own log.
type fake struct {
	*providertest.Server

	url string
}

func startFake(t *testing.T) *fake {
	t.Helper()
	s, url := providertest.Start(t)
	return &fake{Server: s, url: url}
}

// sent are the requests of attempts, contract runs left out, in order.
func (f *fake) sent() []providertest.Entry {
	var out []providertest.Entry
	for _, e := range f.Log() {
		if strings.HasPrefix(e.Key, "att_") {
			out = append(out, e)
		}
	}
	return out
}

// arrives waits until n requests of attempts have come in.
func (f *fake) arrives(t *testing.T, n int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("%d requests", n), func() bool { return len(f.sent()) >= n })
}

// requireOnce fails if any attempt was sent twice.
func (f *fake) requireOnce(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	for _, e := range f.sent() {
		require.False(t, seen[e.Key], "attempt %s was sent twice", e.Key)
		seen[e.Key] = true
	}
}

// answer is an output of the tasks.
func answer(text string) providertest.Behaviour {
	return providertest.Says(`{"text": "`+text+`"}`, "stop")
}

// acknowledged sends headers, and the whole answer on the signal.
func acknowledged(signal <-chan struct{}, text string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		x.Headers()
		if x.Until(signal) {
			x.Content(`{"text": "` + text + `"}`)
			x.Finish("stop", 7)
		}
	}
}

// jams sends headers on the first signal and a definite error on the second one.
func jams(acknowledge, jam <-chan struct{}) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		if !x.Until(acknowledge) {
			return
		}
		x.Headers()
		if x.Until(jam) {
			x.Data(providertest.ErrorBody("paper_jam"))
		}
	}
}
