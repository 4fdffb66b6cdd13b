package app

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/providers"
)

// site is a configuration with tasks, as files, and environment variables.
type site struct {
	dir string
	env []string
}

const siteConfig = `database: sqlite://DATABASE
tasks: [DIR/tasks]
providers:
  - name: acme
    kind: openai
    base_url: https://acme.example/v1
    api_key_env: ACME_KEY
    models:
      - name: small
        context_window: 8192
        max_output_tokens: 2048
        tokenizer: o200k_base
        price_per_million: {input: 0.15, output: 0.60}
  - name: demo
    kind: demo
    total_timeout: 30s
    models: [{name: inkjet}, {name: laser}]
`

const siteTask = `name: triage
version: "1"
temperature: 0
max_output_tokens: 512
target: demo/inkjet
fallbacks: [acme/small]
contract: {runs: 1, max_age: 24h}
`

func newSite(t *testing.T, database string) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), env: []string{"ACME_KEY=one"}}
	shipped, err := fs.Sub(contracts.ShippedTasks(), "triage")
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(filepath.Join(s.dir, "tasks", "triage"), shipped))
	s.write(t, "docket.yaml", strings.NewReplacer("DATABASE", database, "DIR", s.dir).Replace(siteConfig))
	s.write(t, "tasks/triage/task.yaml", siteTask)
	cases, err := filepath.Glob(filepath.Join(s.dir, "tasks", "triage", "cases", "*"))
	require.NoError(t, err)
	for _, c := range cases { // the test's own are less to read
		require.NoError(t, os.Remove(c))
	}
	s.write(t, "tasks/triage/cases/double-charge.json", `{"input": {"text": "You charged me twice."}, "compare": {"/category": "exact", "/priority": "subset"}}`)
	s.write(t, "tasks/triage/cases/thanks.json", `{"input": {"text": "Thanks."}, "assert": ["true"]}`)
	s.write(t, "tasks/triage/cases/thanks.golden.json", `{"structure": [{"pointer": "", "type": "object"}]}`)
	s.write(t, "tasks/triage/cases/double-charge.acme@small.golden.json", `{"values": {"/category": "billing"}}`)
	s.write(t, "tasks/triage/cases/thanks.acme@small.prompt.golden", "=== system\n")
	return s
}

func (s *site) write(t *testing.T, file, text string) {
	t.Helper()
	path := filepath.Join(s.dir, file)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// edit replaces text that must be there.
func (s *site) edit(t *testing.T, file, before, after string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.dir, file))
	require.NoError(t, err)
	require.Contains(t, string(raw), before)
	s.write(t, file, strings.ReplaceAll(string(raw), before, after))
}

func (s *site) load(t *testing.T, now clock) *parts {
	t.Helper()
	cfg, err := config.Load(filepath.Join(s.dir, "docket.yaml"), s.env)
	require.NoError(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler), now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.store.Close()) })
	require.NoError(t, p.store.Migrate(t.Context()))
	return p
}

func (p *parts) suite(t *testing.T, task string) contracts.Suite {
	t.Helper()
	for _, s := range p.suites {
		if s.Task.Name == task {
			return s
		}
	}
	t.Fatalf("no task %s", task)
	return contracts.Suite{}
}

// passing is a result of the task at the target, as this process is configured, with every check passed.
func (p *parts) passing(t *testing.T, task, target string, now time.Time) report.Result {
	t.Helper()
	s := p.suite(t, task)
	ep, ok := contracts.FromRegistry(p.registry).Endpoint(target)
	require.True(t, ok)
	basis, err := s.Basis(ep)
	require.NoError(t, err)
	r := report.Result{Task: task, Target: target, Mode: report.Live, Runs: 1, RanBy: "tester", Basis: basis,
		StartedAt: now.Add(-time.Minute), FinishedAt: now}
	one := report.Case{Name: "one", Runs: []report.Run{{Number: 1}}}
	for _, name := range report.Checks() {
		one.Runs[0].Checks = append(one.Runs[0].Checks, report.Check{Name: name, Status: report.Passed})
	}
	r.Cases = []report.Case{one}
	return r
}

func TestGateClosesOnEachChangeAndOnNothingElse(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	later := func() time.Time { return now.Add(2 * time.Hour) }
	const since = " the result of 2 hours ago."
	database := filepath.Join(t.TempDir(), "docket.db")
	before := newSite(t, database).load(t, later)
	require.NoError(t, gate.NewRecorder(before.store.Client(), func() time.Time { return now }).
		Record(t.Context(), before.passing(t, "triage", "acme/small", now)))

	edit := func(file, from, to string) func(*testing.T, *site) {
		return func(t *testing.T, s *site) { t.Helper(); s.edit(t, file, from, to) }
	}
	write := func(file, text string) func(*testing.T, *site) {
		return func(t *testing.T, s *site) { t.Helper(); s.write(t, file, text) }
	}
	const task, conf, cases = "tasks/triage/", "docket.yaml", "tasks/triage/cases/"

	for name, tc := range map[string]struct {
		change func(*testing.T, *site)
		reason string
	}{
		"SystemPrompt": {edit(task+"system.tmpl", "support", "Support"), "system.tmpl changed since" + since},
		"SystemPromptByOneSpace": {func(t *testing.T, s *site) {
			t.Helper()
			raw, err := os.ReadFile(filepath.Join(s.dir, task, "system.tmpl"))
			require.NoError(t, err)
			s.write(t, task+"system.tmpl", string(raw)+" ")
		}, "system.tmpl changed since" + since},
		"Prompt":          {edit(task+"prompt.tmpl", "{{", "now {{"), "prompt.tmpl changed since" + since},
		"InputSchema":     {edit(task+"input.schema.json", "20000", "20001"), "input.schema.json changed since" + since},
		"OutputSchema":    {edit(task+"output.schema.json", "200", "201"), "output.schema.json changed since" + since},
		"Temperature":     {edit(task+"task.yaml", "temperature: 0", "temperature: 0.1"), "The key temperature of task.yaml is 0.1 now, it was 0 at" + since},
		"MaxOutputTokens": {edit(task+"task.yaml", "512", "511"), "The key max_output_tokens of task.yaml is 511 now, it was 512 at" + since},
		"Threshold":       {edit(task+"task.yaml", "max_age: 24h", "max_age: 23h"), "The key contract.max_age of task.yaml is 23h0m0s now, it was 24h0m0s at" + since},
		"NewThreshold":    {edit(task+"task.yaml", "{runs", "{budget: {p95: 9s}, runs"), "The key contract.budget.p95 of task.yaml was added since" + since},
		"Case":            {edit(cases+"double-charge.json", "twice", "thrice"), "The case double-charge changed since" + since},
		"Assertion":       {edit(cases+"thanks.json", "true", "1 == 1"), "The case thanks changed since" + since},
		"Comparison":      {edit(cases+"double-charge.json", "subset", "structure"), "The case double-charge changed since" + since},
		"AddedCase":       {write(cases+"refund.json", `{"input": {"text": "My money."}}`), "The case refund was added since" + since},
		"RemovedCase": {func(t *testing.T, s *site) {
			t.Helper()
			require.NoError(t, os.Remove(filepath.Join(s.dir, cases, "double-charge.json")))
			require.NoError(t, os.Remove(filepath.Join(s.dir, cases, "double-charge.acme@small.golden.json")))
		}, "The case double-charge was removed since" + since},
		"Golden":       {edit(cases+"thanks.golden.json", "object", "array"), "The golden thanks.golden.json changed since" + since},
		"AddedGolden":  {write(cases+"double-charge.golden.json", `{"structure": []}`), "The golden double-charge.golden.json was added since" + since},
		"TargetGolden": {edit(cases+"double-charge.acme@small.golden.json", "billing", "bug"), "The golden double-charge.acme@small.golden.json changed since" + since},
		"PromptGolden": {write(cases+"thanks.acme@small.prompt.golden", "=== system \n"), "The golden thanks.acme@small.prompt.golden changed since" + since},

		"BaseURL":      {edit(conf, "acme.example/v1", "acme.example/v2"), "The base URL of the provider changed since" + since},
		"Time-out":     {edit(conf, "    api_key_env", "    ack_timeout: 9s\n    api_key_env"), "The setting ack_timeout of the provider is 9s now, it was 10s at" + since},
		"Total":        {edit(conf, "    api_key_env", "    total_timeout: 100s\n    api_key_env"), "The setting total_timeout of the provider is 1m40s now, it was 2m0s at" + since},
		"API":          {edit(conf, "    api_key_env", "    api: chat\n    api_key_env"), "The setting api of the provider is chat now, it was not set at" + since},
		"StrictSchema": {edit(conf, "    api_key_env", "    strict_schema: false\n    api_key_env"), "The setting strict_schema of the provider is false now, it was true at" + since},
		"Window":       {edit(conf, "8192", "8193"), "The setting context_window of the model is 8193 now, it was 8192 at" + since},
		"Tokenizer":    {edit(conf, "o200k_base", "cl100k_base"), "The setting tokenizer of the model is cl100k_base now, it was o200k_base at" + since},
		"Price":        {edit(conf, "0.15", "0.16"), "The setting price_per_million.input of the model is 0.16 now, it was 0.15 at" + since},
		"Reasoning":    {edit(conf, "        context", "        reasoning: true\n        context"), "The setting reasoning of the model is true now, it was false at" + since},
		"Model":        {edit(conf, "name: small", "name: smaller"), "The target acme/small is not configured here."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, database)
			tc.change(t, s)
			p := s.load(t, later)
			d, err := p.check(t.Context(), p.suite(t, "triage").Task, "acme/small")
			require.NoError(t, err)
			require.False(t, d.Allowed)
			want := gate.Stale
			if name == "Model" {
				want = gate.Missing
			}
			require.Equal(t, want, d.State)
			if strings.HasSuffix(tc.reason, since) && d.Reasons[0] == "The last result at acme/small, of 2 hours ago, passed for another version of the task." {
				d.Reasons = d.Reasons[1:] // a task version that changed
			}
			if name == "RemovedCase" {
				require.Equal(t, "The golden double-charge.acme@small.golden.json was removed since"+since, d.Reasons[1])
				d.Reasons = d.Reasons[:1]
			}
			require.Equal(t, []string{tc.reason}, d.Reasons)
		})
	}

	for name, change := range map[string]func(*testing.T, *site){
		"Nothing": func(*testing.T, *site) {},
		"ReformattedYAML": write(task+"task.yaml", `# a comment
"version": "1"
name: 'triage'
max_output_tokens:   512
contract:
  max_age: 1440m
  runs: 1
fallbacks:
  - acme/small
target: demo/inkjet
`),
		"ReformattedCase":         write(cases+"thanks.json", "{\n\t\"assert\": [\"true\"],\n \"compare\": {}, \"input\" : {\"text\":\"Thanks.\"}}"),
		"ReformattedGolden":       write(cases+"thanks.golden.json", "{\"structure\":[{\"type\":\"object\",  \"pointer\":\"\"}]}\n"),
		"ReformattedOutputSchema": edit(task+"output.schema.json", ":", " :  "),
		"ReadMe":                  write(task+"README.md", "notes"),
		"Cassette":                write(task+"cassettes/acme@small/thanks.yaml", "version: 2\n"),
		"GoldenOfAnotherTarget":   write(cases+"thanks.demo@laser.prompt.golden", "other"),
		"UnrelatedTask": func(t *testing.T, s *site) {
			t.Helper()
			require.NoError(t, os.CopyFS(filepath.Join(s.dir, "tasks", "other"), os.DirFS(filepath.Join(s.dir, "tasks", "triage"))))
			s.edit(t, "tasks/other/task.yaml", "name: triage", "name: other")
		},
		"Key": func(_ *testing.T, s *site) { s.env = []string{"ACME_KEY=two"} },
		"KeysVariable": func(t *testing.T, s *site) {
			t.Helper()
			s.edit(t, conf, "ACME_KEY", "OTHER_KEY")
			s.env = []string{"OTHER_KEY=x"}
		},
		"Concurrency":    edit(conf, "    api_key_env", "    max_concurrency: 3\n    api_key_env"),
		"Linger":         edit(conf, "    api_key_env", "    linger: 1s\n    presume_dead_after: 1h\n    api_key_env"),
		"Proxy":          edit(conf, "    api_key_env", "    proxy_from_environment: true\n    api_key_env"),
		"CircuitBreaker": edit(conf, "    api_key_env", "    circuit_breaker: {failures: 1}\n    api_key_env"),
		"Idempotent":     edit(conf, "    api_key_env", "    idempotent: true\n    api_key_env"),
		"DefaultWritten": edit(conf, "    api_key_env", "    ack_timeout: 10000ms\n    currency: USD\n    api: responses\n    api_key_env"),
		"PriceWritten":   edit(conf, "0.15", "0.150"),
		"TrailingSlash":  edit(conf, "acme.example/v1", "acme.example/v1/"),
		"AnotherModel":   edit(conf, "    models:\n", "    models:\n      - {name: large}\n"),
		"OtherProvider":  edit(conf, "total_timeout: 30s", "total_timeout: 31s"),
		"Listener":       edit(conf, "database:", "listen: 127.0.0.1:9\ndatabase:"),
	} {
		t.Run("StaysOpen/"+name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, database)
			change(t, s)
			p := s.load(t, later)
			d, err := p.check(t.Context(), p.suite(t, "triage").Task, "acme/small")
			require.NoError(t, err)
			require.Empty(t, d.Reasons)
			require.True(t, d.Allowed)
		})
	}

	t.Run("Age", func(t *testing.T) {
		t.Parallel()
		p := newSite(t, database).load(t, func() time.Time { return now.Add(24 * time.Hour) })
		d, err := p.check(t.Context(), p.suite(t, "triage").Task, "acme/small")
		require.NoError(t, err)
		require.Equal(t, gate.Stale, d.State)
		require.Equal(t, []string{"The pass is 24h0m0s old; the task allows 24h0m0s."}, d.Reasons)
	})

	t.Run("Adapter", func(t *testing.T) {
		t.Parallel()
		p := newSite(t, database).load(t, later)
		target, ok := p.registry.Lookup("acme/small")
		require.True(t, ok)
		c := target.Config
		c.APIKey = "one"
		registry, err := providers.NewRegistry([]providers.Config{c}, map[string]providers.Factory{
			c.Kind: func(providers.Config) (providers.Provider, error) { return nextAdapter{target.Sender}, nil },
		})
		require.NoError(t, err)
		digests, err := contracts.NewDigests(registry, p.suites)
		require.NoError(t, err)
		d, err := gate.New(digests, later).Check(t.Context(), p.store.Client(), p.suite(t, "triage").Task, "acme/small")
		require.NoError(t, err)
		require.Equal(t, gate.Stale, d.State)
		require.Equal(t, []string{fmt.Sprintf("The adapter is openai/99 now, it was %s at%s", target.Sender.AdapterVersion(), since)}, d.Reasons)
	})
}

// TestGateClosesWhenTheChecksChanged and has coarse words for the results of earlier versions, which have no parts.
func TestGateClosesWhenTheChecksChanged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	p := newSite(t, filepath.Join(t.TempDir(), "docket.db")).load(t, func() time.Time { return now })
	r := p.passing(t, "triage", "acme/small", now)
	r.Basis.ChecksVersion, r.Basis.CasesDigest, r.Basis.Parts = "1", "sha256:other", nil
	require.NoError(t, gate.NewRecorder(p.store.Client(), func() time.Time { return now }).Record(t.Context(), r))
	d, err := p.check(t.Context(), p.suite(t, "triage").Task, "acme/small")
	require.NoError(t, err)
	require.Equal(t, gate.Stale, d.State)
	require.Len(t, d.Reasons, 2)
	require.Regexp(t, "^The task's cases changed since the result of a moment ago: it was for sha256:other, now it is sha256:[0-9a-f]{12}.$", d.Reasons[0])
	require.Equal(t, "The version of the checks changed since the result of a moment ago: it was for 1, now it is "+report.ChecksVersion+".", d.Reasons[1])
}

// TestEveryPartOfADigestHasAName: else a change of it would have coarse words only.
func TestEveryPartOfADigestHasAName(t *testing.T) {
	t.Parallel()
	p := newSite(t, filepath.Join(t.TempDir(), "docket.db")).load(t, time.Now)
	ep, ok := contracts.FromRegistry(p.registry).Endpoint("acme/small")
	require.True(t, ok)
	require.Len(t, ep.ConfigParts, 19)
	for name, value := range ep.ConfigParts {
		require.NotEmpty(t, name)
		require.NotContains(t, string(value), "one", "the key")
	}
	parts := p.suite(t, "triage").Task.Parts()
	for _, file := range []string{tasks.FileInputSchema, tasks.FileOutputSchema, tasks.FileSystem, tasks.FilePrompt, "temperature", "contract.max_age", "retry.base"} {
		require.NotEmpty(t, parts[file], file)
	}
	basis, err := p.suite(t, "triage").Basis(ep)
	require.NoError(t, err)
	for name, v := range basis.Parts {
		require.NotContains(t, v, "acme.example", name)
	}
}

// nextAdapter is a later version of an adapter.
type nextAdapter struct{ providers.Provider }

func (nextAdapter) AdapterVersion() string { return "openai/99" }
