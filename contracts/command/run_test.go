package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/command"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
)

// model answers for a target.
type model struct {
	answer func(ctx context.Context, n int64, req providers.Request) providers.Outcome // n counts from 1

	before func() // called while the request is under way, if set

	asked  atomic.Int64
	atOnce atomic.Int64
	most   atomic.Int64
}

func (m *model) Send(ctx context.Context, req providers.Request, _ providers.Reporter) providers.Outcome {
	now := m.atOnce.Add(1)
	defer m.atOnce.Add(-1)
	for most := m.most.Load(); now > most && !m.most.CompareAndSwap(most, now); most = m.most.Load() {
	}
	if m.before != nil {
		m.before()
	}
	if _, order, ok := strings.Cut(req.System, "exactly this JSON object and nothing else:\n"); ok {
		return said(order)
	}
	return m.answer(ctx, m.asked.Add(1), req)
}

func (m *model) AdapterVersion() string { return "model/1" }

func said(output string) providers.Outcome {
	in, out := 10, 10
	return providers.Outcome{Kind: providers.Completed, Output: []byte(output), Usage: &providers.Usage{InputTokens: &in, OutputTokens: &out}}
}

func always(output string) *model {
	return &model{answer: func(context.Context, int64, providers.Request) providers.Outcome { return said(output) }}
}

// bench is a task folder on disk with models that answer for its targets.
type bench struct {
	dir      string
	models   map[string]*model
	recorder *fakeRecorder
	runner   *contracts.Runner
}

const (
	primary  = "p/one"
	fallback = "q/two"
)

func newBench(t *testing.T, models map[string]*model) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), models: models, recorder: &fakeRecorder{}}
	for name, text := range map[string]string{
		"task.yaml":          "name: echo\nversion: v1\ntarget: p/one\nfallbacks: [q/two]\nmax_output_tokens: 100\ncontract: {runs: 4, stability: 0.75}\n",
		"input.schema.json":  `{"type": "object"}`,
		"output.schema.json": `{"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "n": {"type": "number"}, "x": {"type": "string"}}}`,
		"system.tmpl":        "Obey.",
		"prompt.tmpl":        "{{json .Input}}\n",
		"cases/one.json":     `{"input": {"text": "eins"}, "compare": {"/a": "exact", "/n": "tolerance:0.5"}}`,
	} {
		path := filepath.Join(b.dir, "echo", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	b.runner = contracts.NewRunner(contracts.Deps{Targets: b, RoundTrips: straight{}, Faults: harmless{}, RanBy: "bench"})
	return b
}

func (b *bench) Endpoint(target string) (contracts.Endpoint, bool) {
	m, ok := b.models[target]
	provider, name, _ := strings.Cut(target, "/")
	c := providers.Defaults()
	c.Name, c.MaxConcurrency = provider, 2
	return contracts.Endpoint{ConfigDigest: "sha256:config", Target: providers.Target{
		ID: target, Provider: provider, Config: c, Sender: m,
		Model: providers.Model{Name: name, PricePerMillion: providers.Price{Input: "1000", Output: "1000"}},
	}}, ok
}

func (b *bench) suites(t *testing.T) []contracts.Suite {
	t.Helper()
	list, err := contracts.LoadSuites(os.DirFS(b.dir))
	require.NoError(t, err)
	for i := range list {
		list[i].Dir = filepath.Join(b.dir, list[i].Task.Name)
	}
	return list
}

func (b *bench) run(t *testing.T, ctx context.Context, o command.Options) (code int, out, errs string) {
	t.Helper()
	std, stdout, stderr := streams()
	code = command.Run(ctx, b.suites(t), b.runner, b.recorder, o, std)
	return code, stdout.String(), stderr.String()
}

// files are the goldens under the task's cases, by name.
func (b *bench) files(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	dir := filepath.Join(b.dir, "echo", "cases")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() == "one.json" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		out[e.Name()] = string(raw)
	}
	return out
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	good := `{"n": 1.5, "a": "x"}`

	t.Run("WritesGoldensWithWhichTheSameRunPasses", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, map[string]*model{primary: always(good), fallback: always(`{"a": "y", "n": 2}`)})
		code, out, _ := b.run(t, t.Context(), command.Options{})
		require.Equal(t, command.ExitFailed, code)
		require.Contains(t, out, contracts.CodeGoldenMissing)
		require.Empty(t, b.files(t), "nothing is written by itself")

		code, out, errs := b.run(t, t.Context(), command.Options{Update: true})
		require.Equal(t, command.ExitPassed, code, out+errs)
		require.Equal(t, map[string]string{
			"one.golden.json": `{
  "structure": [
    {
      "pointer": "",
      "type": "object"
    },
    {
      "pointer": "/a",
      "type": "string"
    },
    {
      "pointer": "/n",
      "type": "number"
    }
  ],
  "values": {
    "/n": 1.5
  }
}
`,
			"one.p@one.golden.json":   "{\n  \"values\": {\n    \"/a\": \"x\"\n  }\n}\n",
			"one.q@two.golden.json":   "{\n  \"values\": {\n    \"/a\": \"y\"\n  }\n}\n",
			"one.p@one.prompt.golden": "=== system\nObey.\n=== user\n{\"text\":\"eins\"}\n\n",
			"one.q@two.prompt.golden": "=== system\nObey.\n=== user\n{\"text\":\"eins\"}\n\n",
		}, b.files(t))
		require.Contains(t, errs, "+    \"/a\": \"x\"")
		for _, r := range b.recorder.stored[2:] {
			require.True(t, r.Passed, "what is recorded was judged with the new goldens")
		}

		// Unchanged files are left alone, changed ones are shown.
		stamp := b.stat(t, "one.golden.json")
		b.models[fallback] = always(`{"a": "z", "n": 2}`)
		code, _, errs = b.run(t, t.Context(), command.Options{Update: true, Quiet: true})
		require.Equal(t, command.ExitPassed, code, errs)
		require.True(t, os.SameFile(stamp, b.stat(t, "one.golden.json")))
		require.Contains(t, errs, "-    \"/a\": \"y\"\n+    \"/a\": \"z\"\n")
		require.NotContains(t, errs, "one.golden.json")
	})

	t.Run("WritesTheSharedGoldenFromThePrimaryOnly", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, map[string]*model{primary: always(good), fallback: always(good)})
		code, out, _ := b.run(t, t.Context(), command.Options{Update: true, Target: fallback})
		require.Equal(t, command.ExitFailed, code)
		require.Contains(t, out, "no file cases/one.golden.json")
		require.NotContains(t, b.files(t), "one.golden.json")
		require.Contains(t, b.files(t), "one.q@two.golden.json")
	})

	t.Run("AsksNoMoreOfAFallbackThanItsOwn", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, map[string]*model{fallback: {answer: func(_ context.Context, n int64, _ providers.Request) providers.Outcome {
			return said(`{"a": "x", "n": ` + strconv.FormatInt(n, 10) + `}`) // further apart than the tolerance
		}}})
		_, _, errs := b.run(t, t.Context(), command.Options{Update: true, Target: fallback})
		require.NotContains(t, errs, "no golden is written")
		require.Contains(t, b.files(t), "one.q@two.golden.json")
	})

	t.Run("RefusesWhatBreaksTheContract", func(t *testing.T) {
		t.Parallel()
		alternating := func(outputs ...string) *model {
			return &model{answer: func(_ context.Context, n int64, _ providers.Request) providers.Outcome {
				return said(outputs[int(n-1)%len(outputs)])
			}}
		}
		for name, tc := range map[string]struct {
			model *model
			says  string
		}{
			"NoAnswer": {&model{answer: func(context.Context, int64, providers.Request) providers.Outcome {
				return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{Code: providers.CodeJammed, Message: "paper jam"}}
			}}, "paper jam"},
			"OneAnswerOfManyBreaksTheSchema": {alternating(good, good, good, `{"a": 1}`), "check schema: OUTPUT_INVALID"},
			"Fences":                         {always("```json\n" + good + "\n```"), "NOT_JSON"},
			"NoStructureIsFrequentEnough":    {alternating(good, `{"a": "x", "n": 1.5, "x": ""}`), "the most frequent one 2 times; contract.stability asks for 3"},
			"NoValueThatAllRunsKeep":         {alternating(good, `{"a": "other", "n": 1.5}`), `no run has a value at "/a"`},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, map[string]*model{primary: tc.model})
				b.runner = contracts.NewRunner(contracts.Deps{Targets: b}) // all answers are those of the runs
				code, _, errs := b.run(t, t.Context(), command.Options{Update: true, Target: primary, Concurrency: 1})
				require.Equal(t, command.ExitFailed, code, errs)
				require.Contains(t, errs, `no golden is written for the case "one"`)
				require.Contains(t, errs, tc.says)
				require.Empty(t, b.files(t))
			})
		}
	})

	t.Run("TakesTheMostFrequentStructureAndTheTolerance", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, map[string]*model{primary: {answer: func(_ context.Context, n int64, _ providers.Request) providers.Outcome {
			if n == 1 {
				return said(`{"a": "x", "n": 1.2, "x": "one more"}`)
			}
			return said(good)
		}}})
		b.runner = contracts.NewRunner(contracts.Deps{Targets: b})
		_, _, errs := b.run(t, t.Context(), command.Options{Update: true, Target: primary, Concurrency: 1})
		golden := b.files(t)["one.golden.json"]
		require.NotContains(t, golden, "/x", errs)
		require.Contains(t, golden, `"/n": 1.5`)
	})

	t.Run("SaysWhenTheFolderChangedMeanwhile", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, map[string]*model{primary: always(good)})
		var once sync.Once
		b.models[primary].answer = func(context.Context, int64, providers.Request) providers.Outcome {
			once.Do(func() {
				_ = os.WriteFile(filepath.Join(b.dir, "echo", "cases", "one.json"), []byte(`{"input": {"text": "zwei"}}`), 0o600)
			})
			return said(good)
		}
		code, _, errs := b.run(t, t.Context(), command.Options{Update: true, Target: primary})
		require.Equal(t, command.ExitUnusable, code)
		require.Contains(t, errs, `the case "one" was changed meanwhile`)
	})
}

func (b *bench) stat(t *testing.T, name string) fs.FileInfo {
	t.Helper()
	info, err := os.Stat(filepath.Join(b.dir, "echo", "cases", name))
	require.NoError(t, err)
	return info
}

func TestAgainst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		target string
		code   int
		says   []string
	}{
		"TheSame":          {`{"a": "x", "n": 1.5}`, command.ExitPassed, []string{"q/two against p/one: keeps the same operational contract"}},
		"NumbersByValue":   {`{"n": 1.50, "a": "x"}`, command.ExitPassed, []string{"keeps the same"}},
		"AnotherValue":     {`{"a": "y", "n": 1.5}`, command.ExitFailed, []string{"BREAKS", "    /a\n      - \"x\"\n      + \"y\""}},
		"AnotherStructure": {`{"a": "x", "n": 1.5, "x": "more"}`, command.ExitFailed, []string{"BREAKS", "    /x\n      - nothing\n      + string", "check structure/stability: FAILED against PASSED"}},
		"NoAnswer":         {`none`, command.ExitFailed, []string{"BREAKS", "check schema: NOT_RUN against PASSED", "no answer that is JSON came of q/two"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, map[string]*model{primary: always(`{"a": "x", "n": 1.5}`), fallback: always(tc.target)})
			_, _, _ = b.run(t, t.Context(), command.Options{Update: true})
			code, out, errs := b.run(t, t.Context(), command.Options{Target: fallback, Against: primary})
			require.Equal(t, tc.code, code, out+errs)
			for _, s := range tc.says {
				require.Contains(t, out, s)
			}
			_, out, _ = b.run(t, t.Context(), command.Options{Target: fallback, Against: primary, Format: report.JSON})
			var doc struct{ Comparisons []report.Comparison }
			require.NoError(t, json.Unmarshal([]byte(out), &doc))
			require.Len(t, doc.Comparisons, 1)
			require.Equal(t, tc.code == command.ExitPassed, doc.Comparisons[0].Same)
			require.Len(t, doc.Comparisons[0].Cases, 1)
		})
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		concurrency    int
		atEach, atMost int64
		seconds        float64
	}{
		{100, 2, 4, 11}, // max_concurrency of each provider, for twenty runs, a canary and a round trip; the prompt takes no time
		{3, 2, 3, 15},   // over both
		{1, 1, 1, 44},
	} {
		b := newBench(t, nil)
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int64
			slow := func() *model {
				return &model{answer: func(context.Context, int64, providers.Request) providers.Outcome { return said(`{"a": "x"}`) }, before: func() {
					if n := now.Add(1); n > most.Load() {
						most.Store(n)
					}
					<-time.After(time.Second) // all who may come in do so before this time passes
					now.Add(-1)
				}}
			}
			p, q := slow(), slow()
			b.models = map[string]*model{primary: p, fallback: q}
			begun := time.Now()
			_, _, _ = b.run(t, t.Context(), command.Options{Runs: 20, Concurrency: tc.concurrency})
			require.InDelta(t, tc.seconds, time.Since(begun).Seconds(), 1)
			for _, m := range []*model{p, q} {
				require.EqualValues(t, 21, m.asked.Load(), "the runs and the round trip")
				require.Equal(t, tc.atEach, m.most.Load())
			}
			require.Equal(t, tc.atMost, most.Load())
		})
	}
}

func TestResume(t *testing.T) {
	t.Parallel()

	t.Run("AsksOnlyWhatIsLeft", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		m := &model{}
		m.answer = func(ctx context.Context, n int64, _ providers.Request) providers.Outcome {
			if n == 4 {
				cancel() // Ctrl-C while the fourth is under way
				<-ctx.Done()
				return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: providers.CodeAborted}}
			}
			return said(`{"a": "x", "n": 1}`)
		}
		b := newBench(t, map[string]*model{primary: m})
		o := command.Options{Target: primary, Concurrency: 1, JournalDefault: filepath.Join(t.TempDir(), "deep", "journal.jsonl")}
		code, _, errs := b.run(t, ctx, o)
		require.Equal(t, command.ExitUnusable, code)
		require.Contains(t, errs, "the contract run was interrupted")
		require.Contains(t, errs, "the same command with --resume takes them up")
		require.Empty(t, b.recorder.stored)
		info, err := os.Stat(o.JournalDefault)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

		m.answer = func(context.Context, int64, providers.Request) providers.Outcome { return said(`{"a": "x", "n": 1}`) }
		m.asked.Store(0)
		o.Resume = true
		code, _, errs = b.run(t, t.Context(), o)
		require.Equal(t, command.ExitFailed, code, errs) // there are no goldens
		require.EqualValues(t, 5-3, m.asked.Load(), "four runs and a round trip, of which three were answered")
		require.Len(t, b.recorder.stored, 1)
		require.NoFileExists(t, o.JournalDefault)
		require.NoFileExists(t, o.JournalDefault+".lock")
	})

	t.Run("TakesNothingOfAnotherVersion", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, map[string]*model{primary: always(`{"a": "x", "n": 1}`)})
		b.recorder.err = errors.New("disk full") // so that the journal stays
		o := command.Options{Target: primary, Journal: filepath.Join(t.TempDir(), "journal.jsonl")}
		asked := func(t *testing.T) int64 {
			t.Helper()
			b.models[primary].asked.Store(0)
			code, _, errs := b.run(t, t.Context(), o)
			require.Equal(t, command.ExitUnusable, code, errs)
			require.FileExists(t, o.Journal)
			return b.models[primary].asked.Load()
		}
		require.EqualValues(t, 5, asked(t))
		o.Resume = true
		require.Zero(t, asked(t))
		for file, text := range map[string]string{
			"cases/one.json": `{"input": {"text": "zwei"}}`,
			"prompt.tmpl":    "{{json .Input}}!\n",
		} {
			require.NoError(t, os.WriteFile(filepath.Join(b.dir, "echo", file), []byte(text), 0o600))
			require.EqualValues(t, 5, asked(t), file)
			require.Zero(t, asked(t))
		}
		o.Runs = 3
		require.EqualValues(t, 4, asked(t), "another number of runs")
		o.Resume = false
		require.EqualValues(t, 4, asked(t), "begun anew")
	})
}

func TestMaxCost(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]*model{primary: always(`{"a": "x", "n": 1}`)})
	o := command.Options{Target: primary, MaxCost: "0.6", Concurrency: 1, Journal: filepath.Join(t.TempDir(), "journal.jsonl")}
	code, _, errs := b.run(t, t.Context(), o)
	require.Equal(t, command.ExitUnusable, code)
	require.Contains(t, errs, "the cost cap would be crossed")
	require.Regexp(t, `spent 0\.\d+ of at most 0\.6`, errs)
	require.FileExists(t, o.Journal)
	asked := b.models[primary].asked.Load()

	o.Resume, o.MaxCost = true, "100"
	code, _, errs = b.run(t, t.Context(), o)
	require.Equal(t, command.ExitFailed, code, errs)
	require.EqualValues(t, 5, b.models[primary].asked.Load(), "%d were asked before", asked)
	require.NoFileExists(t, o.Journal)
}
