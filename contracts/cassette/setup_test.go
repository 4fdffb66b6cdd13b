package cassette_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/cassette"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/anthropic"
	"github.com/docket-gateway/docket/providers/demo"
	"github.com/docket-gateway/docket/providers/gemini"
	"github.com/docket-gateway/docket/providers/openai"
	"github.com/docket-gateway/docket/providers/openaicompat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key is the canary that no file may hold.
const key = "sk-canary-0123456789abcdef"

// bundle is a task folder on disk and one configured target.
type bundle struct {
	t       *testing.T
	root    string // of task folders
	config  providers.Config
	version string // of the adapter, if it is not its own
	trips   contracts.RoundTripper
}

// setup writes the task echo with the cases one and two; cfg names kind and address.
func setup(t *testing.T, cfg providers.Config) *bundle {
	t.Helper()
	b := &bundle{t: t, root: t.TempDir(), trips: trips{}}
	for name, content := range map[string]string{
		"task.yaml":          "name: echo\nversion: v1\ntarget: p/laser\ntemperature: 0.5\nmax_output_tokens: 50\ncontract: {runs: 2}\n",
		"input.schema.json":  `{"type": "object", "additionalProperties": false, "required": ["text"], "properties": {"text": {"type": "string"}}}`,
		"output.schema.json": `{"type": "object", "additionalProperties": false, "required": ["echo"], "properties": {"echo": {"type": "string"}}}`,
		"system.tmpl":        "Obey.",
		"prompt.tmpl":        "Echo {{.Input.text}}",
		"cases/one.json":     `{"input": {"text": "eins"}, "assert": ["output.echo != ''"]}`,
		"cases/two.json":     `{"input": {"text": "zwei"}}`,
	} {
		b.write(name, content)
	}
	def := providers.Defaults()
	def.Name, def.Kind, def.BaseURL, def.APIKey, def.API, def.StrictSchema, def.Background = "p", cfg.Kind, cfg.BaseURL, cfg.APIKey, cfg.API, cfg.StrictSchema, cfg.Background
	def.Models = cfg.Models
	if def.Models == nil {
		def.Models = []providers.Model{{Name: demo.Laser, MaxOutputTokens: 100, PricePerMillion: providers.Price{Input: "1", Output: "2"}}}
	}
	b.config = def
	return b
}

// write puts a file into the task's folder.
func (b *bundle) write(name, content string) {
	b.t.Helper()
	file := filepath.Join(b.root, "echo", filepath.FromSlash(name))
	require.NoError(b.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(b.t, os.WriteFile(file, []byte(content), 0o644))
}

// file is where the case's cassette lies.
func (b *bundle) file(name string) string {
	return filepath.Join(b.root, "echo", filepath.FromSlash(cassette.File("p/"+b.config.Models[0].Name, name)))
}

func (b *bundle) read(name string) string {
	b.t.Helper()
	raw, err := os.ReadFile(b.file(name))
	require.NoError(b.t, err)
	return string(raw)
}

// edit changes the case's cassette; old must be there.
func (b *bundle) edit(name, old, changed string) {
	b.t.Helper()
	text := b.read(name)
	require.Contains(b.t, text, old)
	require.NoError(b.t, os.WriteFile(b.file(name), []byte(strings.Replace(text, old, changed, 1)), 0o644))
}

// files are all below the task's cassettes.
func (b *bundle) files() []string {
	b.t.Helper()
	var list []string
	require.NoError(b.t, filepath.WalkDir(filepath.Join(b.root, "echo", "cassettes"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, path)
		}
		return err
	}))
	return list
}

func (b *bundle) registry() *providers.Registry {
	b.t.Helper()
	r, err := providers.NewRegistry([]providers.Config{b.config}, map[string]providers.Factory{
		anthropic.Kind: anthropic.New, gemini.Kind: gemini.New, openai.Kind: openai.New, openaicompat.Kind: openaicompat.New,
		demo.Kind: func(c providers.Config) (providers.Provider, error) {
			p, err := demo.NewWithDelay(c, time.Millisecond)
			return versioned{p, b.version}, err
		},
	})
	require.NoError(b.t, err)
	return r
}

func (b *bundle) suite() contracts.Suite {
	b.t.Helper()
	suites, err := contracts.LoadSuites(os.DirFS(b.root))
	require.NoError(b.t, err)
	require.Len(b.t, suites, 1)
	s := suites[0]
	s.Dir = filepath.Join(b.root, s.Task.Name)
	return s
}

func (b *bundle) target() string { return "p/" + b.config.Models[0].Name }

// run runs the suite, with a registry of its own as another process would have.
func (b *bundle) run(ctx context.Context, mode report.Mode, o contracts.Options) (report.Result, error) {
	b.t.Helper()
	r := b.registry()
	o.Mode = mode
	res, _, err := contracts.NewRunner(contracts.Deps{
		Targets: contracts.FromRegistry(r), Wires: cassette.New(cassette.Options{Registry: r}), RoundTrips: b.trips,
	}).Run(ctx, b.suite(), b.target(), o)
	return res, err
}

// record records and wants that to work.
func (b *bundle) record() report.Result {
	b.t.Helper()
	res, err := b.run(b.t.Context(), report.Record, contracts.Options{})
	require.NoError(b.t, err)
	return res
}

// replay replays and returns the error.
func (b *bundle) replay() error {
	b.t.Helper()
	_, err := b.run(b.t.Context(), report.Replay, contracts.Options{})
	return err
}

// said is a result without what is another each time.
func said(t *testing.T, r report.Result) string {
	t.Helper()
	r.Mode, r.StartedAt, r.FinishedAt = "", time.Time{}, time.Time{}
	raw, err := json.MarshalIndent(r, "", " ")
	require.NoError(t, err)
	return string(raw)
}

// trips sends the case over the wire and calls what came a job's, under an id that no run has.
type trips struct{}

func (trips) RoundTrip(ctx context.Context, s contracts.Suite, c contracts.Case, ep contracts.Endpoint) (contracts.Trip, error) {
	prompt, err := s.Task.Render(c.Input)
	if err != nil {
		return contracts.Trip{}, err
	}
	// As in a job, whose worker knows nothing of the run.
	out := ep.Target.Sender.Send(context.WithoutCancel(ctx), providers.Request{
		AttemptID: "att_" + c.Name, Task: s.Task.Name, Model: ep.Target.Model.Name, System: prompt.System, Prompt: prompt.User, Input: c.Input,
		Schema: s.Task.OutputSchemaJSON, Temperature: s.Task.Temperature, MaxOutputTokens: ep.Target.Model.OutputBudget(s.Task.MaxOutputTokens),
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}, deaf{})
	t := contracts.Trip{State: "FAILED", Outcome: &out, Answered: out.Output, Read: out.Output}
	if out.Kind == providers.Completed {
		t.State = "COMPLETED"
	} else {
		t.Code = out.Failure.Code
	}
	return t, nil
}

type deaf struct{}

func (deaf) Acknowledged(providers.Acknowledgement) {}
func (deaf) Progress()                              {}
func (deaf) Unknown(providers.Failure)              {}

// versioned is an adapter of another version.
type versioned struct {
	providers.Provider
	version string
}

func (v versioned) AdapterVersion() string {
	if v.version != "" {
		return v.version
	}
	return v.Provider.AdapterVersion()
}

// reached is a progress that hears of steps.
type reached struct {
	mu   sync.Mutex
	step func(done int)
	done int
}

func (r *reached) Begins(string, string, int) {}
func (r *reached) Done(string, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.step(r.done)
}
