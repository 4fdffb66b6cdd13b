package cassette_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/cassette"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/demo"
	"github.com/docket-gateway/docket/providers/openaicompat"
	"github.com/docket-gateway/docket/providers/providertest"
)

const command = "docket contracts run --mode record --task echo --target p/laser"

func simulated(t *testing.T) *bundle {
	t.Helper()
	return setup(t, providers.Config{Kind: demo.Kind})
}

func TestMissingCassetteIsAnError(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	err := b.replay()
	require.ErrorIs(t, err, cassette.ErrMissing)
	require.ErrorContains(t, err, command)

	b.record()
	require.NoError(t, b.replay())
	require.NoError(t, os.Remove(b.file("two")))
	err = b.replay()
	require.ErrorIs(t, err, cassette.ErrMissing)
	require.ErrorContains(t, err, b.file("two"))
}

func TestStaleCassetteIsAnErrorThatNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*bundle)
		says   []string
		not    []string
	}{
		"task version": {func(b *bundle) { b.write("system.tmpl", "Obey!") }, []string{"the task's version was sha256:"}, []string{"configuration", "case's digest"}},
		"input":        {func(b *bundle) { b.write("cases/two.json", `{"input": {"text": "drei"}}`) }, []string{`case "two"`, "the case's digest was sha256:"}, []string{`case "one"`, "task's version"}},
		"assertions":   {func(b *bundle) { b.write("cases/two.json", `{"input": {"text": "zwei"}, "assert": ["true"]}`) }, []string{`case "two"`, "the case's digest"}, nil},
		"configuration": {func(b *bundle) { b.config.Models[0].PricePerMillion.Input = "3" },
			[]string{"the digest of the provider's configuration was sha256:"}, []string{"adapter", "task's version"}},
		"time-outs": {func(b *bundle) { b.config.AckTimeout++ }, []string{"the digest of the provider's configuration"}, nil},
		"adapter version": {func(b *bundle) { b.version = "demo/99" },
			[]string{"the adapter's version was demo-simulated/", " and is demo/99 now"}, []string{"configuration"}},
		"endpoint and kind": {func(b *bundle) { b.config.Kind, b.config.BaseURL = openaicompat.Kind, "https://models.example/v1" },
			[]string{"the endpoint was none and is https://models.example/v1 now", "the provider's kind was demo"}, nil},
		"another's file": {func(b *bundle) {
			require.NoError(b.t, os.Rename(b.file("one"), b.file("two")))
			b.write("cases/two.json", b.caseText("one"))
			require.NoError(b.t, os.Remove(b.root+"/echo/cases/one.json"))
		}, []string{"the case was one and is two now"}, nil},
		"false origin": {func(b *bundle) { b.edit("two", "origin: simulated", "origin: remote") }, []string{"what the file says of its origin was remote, send: Simulated"}, nil},
		"false words":  {func(b *bundle) { b.edit("two", "no model did", "a vendor did") }, []string{"what the file says of its origin"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := simulated(t)
			b.record()
			require.NoError(t, b.replay())
			c.change(b)
			err := b.replay()
			require.ErrorIs(t, err, cassette.ErrStale)
			for _, s := range append(c.says, command) {
				require.ErrorContains(t, err, s)
			}
			for _, s := range c.not {
				require.NotContains(t, strings.ReplaceAll(strings.ReplaceAll(err.Error(), b.root, ""), command, ""), s)
			}
		})
	}
}

func (b *bundle) caseText(name string) string {
	b.t.Helper()
	raw, err := os.ReadFile(b.root + "/echo/cases/" + name + ".json")
	require.NoError(b.t, err)
	return string(raw)
}

func TestGoldensDoNotMakeACassetteStale(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	b.record()
	b.write("cases/one.golden.json", `{"structure": []}`)
	require.NoError(t, b.replay())
}

func TestBrokenCassetteIsAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(text string) string
		says   string
	}{
		"no YAML":       {func(s string) string { return s + "\n\t: ][" }, ""},
		"empty":         {func(string) string { return "" }, ""},
		"cut off":       {func(s string) string { return s[:strings.LastIndex(s, "\n- id:")+1] }, "4 interactions were recorded and 3 are there"},
		"unknown key":   {func(s string) string { return strings.Replace(s, "\n  kind:", "\n  kin:", 1) }, "kin"},
		"repeated key":  {func(s string) string { return strings.Replace(s, "\n  kind:", "\n  kind: demo\n  kind:", 1) }, "kind"},
		"other version": {func(s string) string { return strings.Replace(s, "\nversion: 2", "\nversion: 1", 1) }, "its version is 1"},
		"only go-vcr's": {func(s string) string { return "---\n" + s[strings.Index(s, "version: 2"):] }, "does not say what it was recorded from"},
		"empty place":   {func(s string) string { return s[:strings.LastIndex(s, "\n- id:")+1] + "- null\n" }, "an interaction is empty"},
		"no duration": {func(s string) string { return regexp.MustCompile(`(?m)^ *duration: .*\n`).ReplaceAllString(s, "") },
			"an answer has no duration"},
		"future": {func(s string) string {
			return regexp.MustCompile(`recorded_at: .*`).ReplaceAllString(s, "recorded_at: "+time.Now().Add(25*time.Hour).UTC().Format(time.RFC3339))
		}, "it says that it was recorded in the future"},
		"negative duration": {func(s string) string { return regexp.MustCompile(`duration: .*`).ReplaceAllString(s, "duration: -9s") },
			"an answer has no duration"},
		"two documents": {func(s string) string { return s + "---\nversion: 2\n" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := simulated(t)
			b.record()
			require.NoError(t, os.WriteFile(b.file("one"), []byte(c.change(b.read("one"))), 0o644))
			err := b.replay()
			require.ErrorIs(t, err, cassette.ErrBroken)
			require.ErrorContains(t, err, b.file("one"))
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, command)
		})
	}
}

func TestRecordedCallWithoutAnEndIsAnError(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	b.record()
	b.edit("one", `"ended":"completed"`, `"ended":"perhaps"`)
	require.ErrorIs(t, b.replay(), cassette.ErrBroken)
}

func TestEachRunNeedsARecordingOfItsOwn(t *testing.T) {
	t.Parallel()
	_, url, _ := gone(t, providertest.ChatCompletions())
	for _, cfg := range []providers.Config{{Kind: demo.Kind}, {Kind: openaicompat.Kind, BaseURL: url}} {
		b := setup(t, cfg)
		b.record()
		_, err := b.run(t.Context(), report.Replay, contracts.Options{Runs: 4})
		require.ErrorIs(t, err, cassette.ErrNotOnIt)
		require.ErrorContains(t, err, "run 3")
		require.ErrorContains(t, err, "it holds 2 runs of the case")
		require.ErrorContains(t, err, command+" --runs 4")
		_, err = b.run(t.Context(), report.Replay, contracts.Options{Runs: 1})
		require.NoError(t, err, "more than are asked for may be there")
	}
}

// wire opens the case one.
func (b *bundle) wire(ctx context.Context, mode report.Mode) (contracts.Wire, contracts.Suite, error) {
	b.t.Helper()
	r := b.registry()
	s := b.suite()
	ep, ok := contracts.FromRegistry(r).Endpoint("p/laser")
	require.True(b.t, ok)
	w, err := cassette.New(cassette.Options{Registry: r}).Open(ctx, s, s.Cases[0], ep, mode)
	return w, s, err
}

func ask(ctx context.Context, w contracts.Wire, id, prompt string) providers.Outcome {
	return w.Endpoint().Target.Sender.Send(ctx, providers.Request{
		AttemptID: id, Task: "echo", Model: demo.Laser, Prompt: prompt, Input: []byte(`{"text":"x"}`),
		Schema: []byte(`{"type":"object","required":["echo"],"properties":{"echo":{"type":"string"}}}`), MaxOutputTokens: 50,
	}, deaf{})
}

func TestNoAnswerIsServedTwice(t *testing.T) {
	t.Parallel()
	fake, url, stop := gone(t, providertest.ChatCompletions())
	for _, cfg := range []providers.Config{{Kind: demo.Kind}, {Kind: openaicompat.Kind, BaseURL: url}} {
		b := setup(t, cfg)
		w, _, err := b.wire(t.Context(), report.Record)
		require.NoError(t, err)
		require.Equal(t, providers.Completed, ask(t.Context(), w, "a", "x").Kind)
		require.NoError(t, w.Close())
		if cfg.BaseURL != "" {
			require.Len(t, fake.Log(), 1)
			stop()
		}
		w, _, err = b.wire(t.Context(), report.Replay)
		require.NoError(t, err)
		require.Equal(t, providers.Completed, ask(t.Context(), w, "b", "x").Kind)
		require.NotEqual(t, providers.Completed, ask(t.Context(), w, "c", "x").Kind)
		err = w.Close()
		require.ErrorIs(t, err, cassette.ErrNotOnIt)
		require.ErrorContains(t, err, "served already")
		require.Equal(t, err, w.Close(), "it is closed once")
	}
}

func TestAnotherRequestIsNotOnTheCassette(t *testing.T) {
	t.Parallel()
	_, url, _ := gone(t, providertest.ChatCompletions())
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url})
	b.record()
	for changed, says := range map[string]string{
		`"max_tokens":50`:             "run 1, POST /v1/chat/completions: the request differs in the body at /max_tokens",
		`Echo eins`:                   "the request differs in the body at /messages/1/content",
		`/v1/chat/completions`:        "the request differs in the path /v1/chat/completions",
		"method: POST":                "the request differs in the method, POST instead of PUT",
		"- run 1":                     "run 1, POST /v1/chat/completions: it holds 2 runs",
		`"stream":true}`:              "the request differs in the body",
		`"model":"laser","max_toke`:   "the request differs in how the body is written",
		`{"include_usage":true}`:      "the request differs in the body at /stream_options",
		`/v1/chat/completions` + "\n": "the request differs in the query",
	} {
		func() {
			to := map[string]string{
				`"max_tokens":50`: `"max_tokens":51`, `Echo eins`: `Echo EINS`, `/v1/chat/completions`: `/v2/chat/completions`, "method: POST": "method: PUT",
				"- run 1": "- run 7", `"stream":true}`: `"stream":true`, `"model":"laser","max_toke`: `"model":"laser", "max_toke`,
				`{"include_usage":true}`: `{"include_usage":false}`, `/v1/chat/completions` + "\n": `/v1/chat/completions?a=b` + "\n",
			}[changed]
			before := b.read("one")
			defer func() { require.NoError(t, os.WriteFile(b.file("one"), []byte(before), 0o644)) }()
			at := strings.Index(before, "- run 1")
			head := before[:at]
			head = head[strings.LastIndex(head, "\n- id:"):]
			one := before[len(before[:at])-len(head):]
			require.Contains(t, one, changed)
			require.NoError(t, os.WriteFile(b.file("one"), []byte(strings.TrimSuffix(before, one)+strings.Replace(one, changed, to, 1)), 0o644))
			err := b.replay()
			require.ErrorIs(t, err, cassette.ErrNotOnIt)
			require.ErrorContains(t, err, says)
		}()
	}
}

func TestReplayOpensNoConnectionToTheProvider(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var reached sync.Map
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Store("it was", true)
			_ = c.Close()
		}
	})
	defer func() { _ = l.Close(); wg.Wait() }()
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: "http://" + l.Addr().String() + "/v1", APIKey: key})
	w, _, err := b.wire(t.Context(), report.Record)
	require.NoError(t, err)
	require.NotEqual(t, providers.Completed, ask(t.Context(), w, "a", "x").Kind)
	require.Error(t, w.Close())
	_, ok := reached.LoadAndDelete("it was")
	require.True(t, ok, "recording reaches it")

	require.ErrorIs(t, b.replay(), cassette.ErrMissing)
	_, ok = reached.Load("it was")
	require.False(t, ok)
}

func TestBudgetJudgesTheRecordedTimes(t *testing.T) {
	t.Parallel()
	fake, url, stop := gone(t, providertest.ChatCompletions())
	for _, cfg := range []providers.Config{{Kind: demo.Kind}, {Kind: openaicompat.Kind, BaseURL: url}} {
		b := setup(t, cfg)
		fake.OnModel(demo.Laser, providertest.Slow(60*time.Millisecond))
		res := b.record()
		if cfg.BaseURL != "" {
			stop()
			require.GreaterOrEqual(t, res.Latency.P50MS, int64(60), "from the request to the last byte")
		}
		for _, name := range []string{"one", "two"} {
			text := b.read(name)
			for strings.Contains(text, "    duration: ") {
				before, after, _ := strings.Cut(text, "    duration: ")
				_, rest, _ := strings.Cut(after, "\n")
				text = before + "    duRation: 3m7s\n" + rest
			}
			require.NoError(t, os.WriteFile(b.file(name), []byte(strings.ReplaceAll(text, "duRation", "duration")), 0o644))
		}
		started := time.Now()
		res, err := b.run(t.Context(), report.Replay, contracts.Options{})
		require.NoError(t, err)
		require.Equal(t, int64(187_000), res.Latency.P50MS)
		require.Less(t, time.Since(started), time.Minute, "nobody waits for what was waited for once")
	}
}

func TestManyAtOnceAreRecordedAndReplayedEachAsItself(t *testing.T) {
	t.Parallel()
	var n int
	var mu sync.Mutex
	p := providertest.ChatCompletions()
	p.Default = func(string) providertest.Behaviour {
		mu.Lock()
		defer mu.Unlock()
		n++
		return providertest.Says(fmt.Sprintf(`{"echo":"%d"}`, n), "stop")
	}
	_, url, stop := gone(t, p)
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url})
	outputs := func(mode report.Mode) (list []string) {
		r := b.registry()
		ev, err := contracts.NewRunner(contracts.Deps{
			Targets: contracts.FromRegistry(r), Wires: cassette.New(cassette.Options{Registry: r}), RoundTrips: trips{},
		}).Collect(t.Context(), b.suite(), "p/laser", contracts.Options{Mode: mode, Runs: 20, Concurrency: 16})
		require.NoError(t, err)
		for _, c := range ev.Cases {
			for _, a := range append(c.Runs, c.Answer) {
				list = append(list, string(a.Outcome.Output))
			}
			list = append(list, string(c.Trip.Answered))
		}
		return list
	}
	recorded := outputs(report.Record)
	require.Len(t, recorded, 44)
	stop()
	for range 3 {
		require.Equal(t, recorded, outputs(report.Replay))
	}
}

func TestBuiltInTasksAreReplayedFromTheProgram(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	recorded := b.record()
	files := fstest.MapFS{}
	disk := os.DirFS(b.root)
	require.NoError(t, fs.WalkDir(disk, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			raw, err := fs.ReadFile(disk, path)
			files[path] = &fstest.MapFile{Data: raw}
			return err
		}
		return err
	}))
	suites, err := contracts.LoadSuites(files)
	require.NoError(t, err)
	require.Empty(t, suites[0].Dir)
	r := b.registry()
	runner := contracts.NewRunner(contracts.Deps{Targets: contracts.FromRegistry(r), Wires: cassette.New(cassette.Options{Registry: r}), RoundTrips: trips{}})
	res, _, err := runner.Run(t.Context(), suites[0], "p/laser", contracts.Options{Mode: report.Replay})
	require.NoError(t, err)
	require.Equal(t, said(t, recorded), said(t, res))

	_, _, err = runner.Run(t.Context(), suites[0], "p/laser", contracts.Options{Mode: report.Record})
	require.ErrorIs(t, err, cassette.ErrNotRecorded)
	require.ErrorContains(t, err, "built into the program")
	require.ErrorContains(t, err, "tasks: in docket.yaml")
}

func TestInterruptedReplayIsNoMissingRequest(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	b.record()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := b.run(ctx, report.Replay, contracts.Options{})
	require.ErrorIs(t, err, contracts.ErrInterrupted)
	require.NotErrorIs(t, err, cassette.ErrNotOnIt)
}
