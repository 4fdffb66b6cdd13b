package cassette_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
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

func TestInterruptedRecordingLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	_, url, _ := gone(t, providertest.ChatCompletions())
	for _, cfg := range []providers.Config{{Kind: demo.Kind}, {Kind: openaicompat.Kind, BaseURL: url}} {
		b := setup(t, cfg)
		b.record()
		before := b.read("one") + b.read("two")
		ctx, cancel := context.WithCancel(t.Context())
		_, err := b.run(ctx, report.Record, contracts.Options{Concurrency: 1, Progress: &reached{step: func(done int) {
			if done == 2 {
				cancel()
			}
		}}})
		require.ErrorIs(t, err, contracts.ErrInterrupted)
		require.Equal(t, before, b.read("one")+b.read("two"))
		require.Len(t, b.files(), 2, "and nothing beside it")
		require.NoError(t, b.replay())
	}
}

func TestInterruptedWireSaysThatNothingWasRecorded(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	ctx, cancel := context.WithCancel(t.Context())
	w, _, err := b.wire(ctx, report.Record)
	require.NoError(t, err)
	ask(ctx, w, "a", "x")
	cancel()
	require.ErrorIs(t, w.Close(), cassette.ErrNotRecorded)
	require.Empty(t, b.files())
}

func TestACapThatIsReachedLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	// It fails without an account, so what was set aside stays so.
	b := setup(t, providers.Config{Kind: demo.Kind, Models: []providers.Model{{Name: demo.Inkjet, PricePerMillion: providers.Price{Input: "1", Output: "2"}}}})
	b.record()
	before := b.read("one") + b.read("two")
	most, err := contracts.NewSpending("0.003")
	require.NoError(t, err)
	_, err = b.run(t.Context(), report.Record, contracts.Options{Spending: most, Concurrency: 1, Runs: 20})
	require.ErrorIs(t, err, contracts.ErrMaxCost)
	require.Equal(t, before, b.read("one")+b.read("two"))
}

// A run that is taken up again has answers that no wire heard.
func TestRecordingTakesNothingFromAJournal(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	_, err := b.run(t.Context(), report.Record, contracts.Options{Journal: full{}})
	require.NoError(t, err)
	require.Contains(t, b.read("one"), "interactions: 4\n")
	require.NoError(t, b.replay())
}

type full struct{}

func (full) Load(string) (contracts.Answer, bool) {
	return contracts.Answer{Outcome: providers.Outcome{Kind: providers.Completed, Output: []byte(`{}`)}}, true
}
func (full) Save(string, contracts.Answer) error { return nil }

func TestARequestWithoutAWholeAnswerIsNotRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behaves providertest.Behaviour
		says    string
	}{
		"no acknowledgement": {providertest.Hang(), "it was not acknowledged within ack_timeout, 70ms"},
		"silence":            {providertest.AckThenSilent(), "it was silent for idle_timeout, 80ms"},
		"no end":             {providertest.Drip(10 * time.Millisecond), "it did not end within total_timeout, 300ms"},
		"connection lost":    {providertest.DropAfter(1), "no whole answer came"},
		"reset":              {providertest.Reset(), "no whole answer came"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, url, _ := gone(t, providertest.ChatCompletions())
			b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url, APIKey: key})
			b.config.AckTimeout, b.config.IdleTimeout, b.config.TotalTimeout, b.config.Linger = 70*time.Millisecond, 80*time.Millisecond, 300*time.Millisecond, 0
			fake.Enqueue(c.behaves)
			_, err := b.run(t.Context(), report.Record, contracts.Options{Runs: 1, Concurrency: 1})
			require.ErrorIs(t, err, cassette.ErrNotRecorded)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "--mode live")
			require.LessOrEqual(t, len(b.files()), 1, "the case that went well may be there")
		})
	}
}

func TestAnUnreachableProviderIsNotRecorded(t *testing.T) {
	t.Parallel()
	_, url, stop := gone(t, providertest.ChatCompletions())
	stop()
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url})
	_, err := b.run(t.Context(), report.Record, contracts.Options{})
	require.ErrorIs(t, err, cassette.ErrNotRecorded)
	require.Empty(t, b.files())
}

func TestAnAnswerWithTheKeyIsNotRecorded(t *testing.T) {
	t.Parallel()
	fake, url, _ := gone(t, providertest.ChatCompletions())
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url, APIKey: key})
	// In pieces, so that no search of the stream would find it.
	fake.OnModel(demo.Laser, providertest.Says(`{"echo":"`+key+`"}`, "stop"))
	_, err := b.run(t.Context(), report.Record, contracts.Options{})
	require.ErrorIs(t, err, cassette.ErrNotRecorded)
	require.ErrorContains(t, err, "holds the provider's key")
	require.NotContains(t, err.Error(), key)
	require.Empty(t, b.files())
}

// What is taken out is what is found; what is found in another form keeps the file from being written.
func TestAFileThatStillHoldsTheKeyIsNotWritten(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"escaped":           `{"error":{"message":"\u0073` + key[1:] + `"}}`,
		"escaped in events": "data: {\"error\":{\"message\":\"\\u0073" + key[1:] + "\"}}\n\n",
		"in a URL":          `see https://x.example/?q=%73` + key[1:],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, body)
			}))
			defer h.Close()
			b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: h.URL, APIKey: key})
			_, err := b.run(t.Context(), report.Record, contracts.Options{})
			require.ErrorIs(t, err, cassette.ErrNotRecorded)
			require.ErrorContains(t, err, "the provider's key is in it still")
			require.Empty(t, b.files())
		})
	}
}

func TestAFolderThatCannotBeWrittenIsFoundOutFirst(t *testing.T) {
	t.Parallel()
	fake, url, _ := gone(t, providertest.ChatCompletions())
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url})
	b.write("cassettes", "not a folder")
	_, err := b.run(t.Context(), report.Record, contracts.Options{})
	require.ErrorIs(t, err, cassette.ErrNotRecorded)
	require.Empty(t, fake.Log(), "before anything is paid for")
}

func TestWhatIsNotReplayableIsRecordedAsAFailure(t *testing.T) {
	t.Parallel()
	fake, url, stop := gone(t, providertest.ChatCompletions())
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url})
	fake.Enqueue(providertest.HTML(http.StatusBadGateway), providertest.CutAfter(1), providertest.NoDone(), providertest.DamagedEvent(),
		providertest.Status(http.StatusMovedPermanently, "text/plain", "", "Location", url+"/elsewhere"), providertest.Whole("stop"))
	recorded := b.record()
	stop()
	res, err := b.run(t.Context(), report.Replay, contracts.Options{})
	require.NoError(t, err)
	require.Equal(t, said(t, recorded), said(t, res))
}

// One that asked on the wire's own server without being our adapter would leave what it likes on the cassette.
func TestStrangersAreNotServed(t *testing.T) {
	t.Parallel()
	fake, url, _ := gone(t, providertest.ChatCompletions())
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url})
	w, _, err := b.wire(t.Context(), report.Record)
	require.NoError(t, err)
	base := w.Endpoint().Target.Config.BaseURL
	require.NotContains(t, base, url)
	require.True(t, strings.HasSuffix(base, "/v1"))
	host := strings.Join(strings.SplitN(base, "/", 4)[:3], "/")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, host+"/v1/chat/completions", strings.NewReader("{}"))
	require.NoError(t, err)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	require.NoError(t, w.Close())
	require.Empty(t, fake.Log())
}

func TestNothingListensAfterClose(t *testing.T) {
	t.Parallel()
	_, url, _ := gone(t, providertest.ChatCompletions())
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url})
	w, _, err := b.wire(t.Context(), report.Record)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	out := ask(t.Context(), w, "late", "x")
	require.Equal(t, providers.CodeUnreachable, out.Failure.Code)
}

// A kind that answers past its base URL would leave a cassette that has nothing on it.
func TestAnAnswerByAnotherWayIsNotRecorded(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	b.config.BaseURL = "https://models.example/v1"
	_, err := b.run(t.Context(), report.Record, contracts.Options{})
	require.ErrorIs(t, err, cassette.ErrNotRecorded)
	require.ErrorContains(t, err, "another way than its base_url")
}

func TestTheFileIsReplacedInOneStep(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	b.record()
	// A second name of the old file goes on to show it, unless that was written over.
	before, link := b.read("one"), filepath.Join(t.TempDir(), "old")
	require.NoError(t, os.Link(b.file("one"), link))
	var stop atomic.Bool
	done := make(chan error, 1)
	go func() {
		for !stop.Load() {
			if raw, err := os.ReadFile(b.file("one")); err != nil || !strings.HasPrefix(string(raw), "---\ndocket:") || !strings.Contains(string(raw), "run 2") {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range 5 {
		b.record()
	}
	stop.Store(true)
	require.NoError(t, <-done)
	old, err := os.ReadFile(link)
	require.NoError(t, err)
	require.Equal(t, before, string(old))
	require.NotEqual(t, before, b.read("one"))
	info, err := os.Stat(b.file("one"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(b.file("one")))
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

func TestRecordingAgainKeepsTheOrder(t *testing.T) {
	t.Parallel()
	b := simulated(t)
	steps := func() (list []string) {
		for line := range strings.Lines(b.read("one")) {
			if s, ok := strings.CutPrefix(line, "      - "); ok && !strings.Contains(s, "application/json") {
				list = append(list, strings.TrimSpace(s))
			}
		}
		return list
	}
	_, err := b.run(t.Context(), report.Record, contracts.Options{Runs: 11, Concurrency: 16})
	require.NoError(t, err)
	require.Contains(t, b.read("one"), "- id: 12\n")
	require.Equal(t, []string{"canary", "round trip", "run 1", "run 2", "run 3", "run 4", "run 5", "run 6", "run 7", "run 8", "run 9", "run 10", "run 11"}, steps())
}

func TestBodiesAreKeptToTheByte(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"line ends":     "\r\n\n  a\t\n\r b \n\n",
		"separators":    "a\u0085b\u2028c\u2029d\ufeffe",
		"controls":      "\x00\x01\x1b\x7f",
		"no UTF-8":      "a\xff\xfe\xc3",
		"as YAML":       "---\n- !!binary x\n...\n",
		"number":        "1e3",
		"nothing":       "",
		"spaces":        " \n  ",
		"comment":       "# a: b",
		"other planes":  "🖨️ \U0010ffff",
		"surrogates":    `{"a":"\ud83d"}`,
		"trailing":      "x\n\n\n",
		"half a rune":   "data: \xf0\x9f",
		"very long":     strings.Repeat("wort ", 100_000),
		"quotes":        `'"\'"` + "`",
		"leading break": "\n x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
			defer h.Close()
			b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: h.URL})
			get := func(w contracts.Wire) string {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.Endpoint().Target.Config.BaseURL+"/x", nil)
				require.NoError(t, err)
				req.Close = true
				resp, err := http.DefaultClient.Do(req)
				require.NoError(t, err)
				raw, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.NoError(t, w.Close())
				return string(raw)
			}
			w, _, err := b.wire(t.Context(), report.Record)
			require.NoError(t, err)
			require.Equal(t, body, get(w))
			w, _, err = b.wire(t.Context(), report.Replay)
			require.NoError(t, err)
			require.Equal(t, body, get(w))
		})
	}
}

// What is packed cannot be searched.
func TestAPackedAnswerIsNotRecorded(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") == "" {
			w.Header().Set("Content-Encoding", "gzip")
		}
		_, _ = io.WriteString(w, "x")
	}))
	defer h.Close()
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: h.URL})
	_, err := b.run(t.Context(), report.Record, contracts.Options{})
	require.ErrorIs(t, err, cassette.ErrNotRecorded)
	require.ErrorContains(t, err, "packed")
	require.Empty(t, b.files())
}

func TestNothingMoreIsSentForACaseThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	fake, url, _ := gone(t, providertest.ChatCompletions())
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url})
	fake.OnModel(demo.Laser, providertest.Reset())
	_, err := b.run(t.Context(), report.Record, contracts.Options{Runs: 50, Concurrency: 1})
	require.ErrorIs(t, err, cassette.ErrNotRecorded)
	require.LessOrEqual(t, len(fake.Log()), 2, "one for each case")
}

// go-vcr writes requests with their headers if it is asked to.
func TestNoDebuggingShowsAKey(t *testing.T) {
	t.Setenv("VCR_DEBUG", "true")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = stderr }()
	_, url, _ := gone(t, providertest.ChatCompletions())
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url, APIKey: key})
	read := make(chan []byte)
	go func() {
		raw, _ := io.ReadAll(r)
		read <- raw
	}()
	b.record()
	require.NoError(t, b.replay())
	require.NoError(t, w.Close())
	require.Empty(t, <-read)
}
