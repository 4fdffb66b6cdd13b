package cassette_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/report"
	"github.com/docket-gateway/docket/internal/modelserver"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/anthropic"
	"github.com/docket-gateway/docket/providers/anthropic/anthropictest"
	"github.com/docket-gateway/docket/providers/demo"
	"github.com/docket-gateway/docket/providers/gemini"
	"github.com/docket-gateway/docket/providers/gemini/geminitest"
	"github.com/docket-gateway/docket/providers/openai"
	"github.com/docket-gateway/docket/providers/openai/openaitest"
	"github.com/docket-gateway/docket/providers/openaicompat"
	"github.com/docket-gateway/docket/providers/providertest"
)

const (
	answer  = `{"echo":"prüfen 🖨️ \u2028"}`
	account = "org-0123456789abcdefghij"
)

// gone runs a fake that can be taken away before the test ends. Its answers have headers that nobody may write down.
func gone(t *testing.T, p providertest.Protocol) (fake *providertest.Server, url string, stop func()) {
	t.Helper()
	fake = providertest.NewServerOf(p)
	h := httptest.NewUnstartedServer(nil)
	fake.Configure(h.Config)
	h.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session="+key)
		w.Header().Set("Openai-Organization", account)
		w.Header().Set("Anthropic-Organization-Id", account)
		fake.ServeHTTP(w, r)
	})
	h.Start()
	stop = func() {
		fake.Close()
		h.CloseClientConnections()
		h.Close()
	}
	t.Cleanup(stop)
	return fake, h.URL + "/v1", stop
}

func TestReplaysEachKindWithoutItsProvider(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		config   providers.Config
		protocol providertest.Protocol
		says     func(string) providertest.Behaviour
		fails    func(status int, code string, headers ...string) providertest.Behaviour
		version  string // of the API in the address
	}{
		"anthropic":         {providers.Config{Kind: anthropic.Kind}, anthropictest.Messages(), anthropictest.Says, anthropictest.Error, ""},
		"gemini":            {providers.Config{Kind: gemini.Kind}, geminitest.Stream(), geminitest.Says, geminitest.Error, "beta"},
		"openai responses":  {providers.Config{Kind: openai.Kind, StrictSchema: true}, openaitest.Responses(), openaitest.ResponsesSays, openaitest.Error, ""},
		"openai background": {providers.Config{Kind: openai.Kind, Background: true}, openaitest.NewAccount().Protocol(), nil, openaitest.Error, ""},
		"openai chat":       {providers.Config{Kind: openai.Kind, API: openai.APIChat}, openaitest.Chat(), func(o string) providertest.Behaviour { return openaitest.ChatSays(o, "stop") }, openaitest.Error, ""},
		"openai-compatible": {providers.Config{Kind: openaicompat.Kind}, providertest.ChatCompletions(), func(o string) providertest.Behaviour { return providertest.Says(o, "stop") }, providertest.Error, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, url, stop := gone(t, k.protocol)
			k.config.BaseURL, k.config.APIKey = url+k.version, key
			b := setup(t, k.config)
			if k.says != nil {
				fake.OnModel(demo.Laser, k.says(answer))
			}
			// One of all is refused, and quotes the key and the account.
			fake.Enqueue(k.fails(http.StatusTooManyRequests, "rate_limit_exceeded "+key+" of "+account, "Retry-After", "7"))

			recorded := b.record()
			sent := len(fake.Log())
			require.Equal(t, 8, sent, "two cases of two runs, a canary and a round trip")
			for _, e := range fake.Log() {
				require.Contains(t, e.Header.Get("Authorization")+e.Header.Get("X-Api-Key")+e.Header.Get("X-Goog-Api-Key"), key)
				require.Empty(t, e.Header.Get("Docket-Step"))
				require.Empty(t, e.Header.Get("X-Forwarded-For"))
			}
			require.Len(t, b.files(), 2)
			for _, name := range []string{"one", "two"} {
				text := b.read(name)
				for _, secret := range []string{"canary-0123", "session=", "0123456789abcdefghij", "att_"} {
					require.NotContains(t, text, secret)
				}
				require.Contains(t, text, "Local server: ")
				require.Contains(t, text, "endpoint: "+k.config.BaseURL)
				require.Contains(t, text, "interactions: 4\n")
			}
			require.Contains(t, b.read("one")+b.read("two"), "rate_limit_exceeded [redacted] of [redacted]")

			stop()
			b.config.APIKey = "" // as on a machine that has none
			replayed, err := b.run(t.Context(), report.Replay, contracts.Options{})
			require.NoError(t, err)
			require.Equal(t, said(t, recorded), said(t, replayed))
			require.Contains(t, said(t, replayed), "RATE_LIMITED")
			require.Contains(t, said(t, replayed), `"input_tokens": 11`)
			require.Len(t, fake.Log(), sent)
		})
	}
}

func TestTheOriginalTraceContextReachesTheProvider(t *testing.T) {
	t.Parallel()
	fake, url, _ := gone(t, providertest.ChatCompletions())
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: url})
	b.record()
	var seen []string
	for _, e := range fake.Log() {
		seen = append(seen, e.Traceparent)
	}
	require.Contains(t, seen, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	require.Contains(t, seen, "", "what has none gets none")
	for _, s := range seen {
		require.Contains(t, []string{"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, s)
	}
}

func TestReplaysTheDemoAndSaysThatItIsSimulated(t *testing.T) {
	t.Parallel()
	for _, model := range []string{demo.Laser, demo.Inkjet} {
		b := setup(t, providers.Config{Kind: demo.Kind, Models: []providers.Model{{Name: model}}})
		recorded := b.record()
		require.Contains(t, b.read("one"), "about: 'Simulated: ")
		require.Contains(t, b.read("one"), "origin: simulated")
		require.Contains(t, b.read("one"), "endpoint: none")
		replayed, err := b.run(t.Context(), report.Replay, contracts.Options{})
		require.NoError(t, err)
		require.Equal(t, said(t, recorded), said(t, replayed))
	}
}

// A fax's silence is a time-out, which is a recording as good as an answer.
func TestReplaysATimeOutOfTheDemoAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, providers.Config{Kind: demo.Kind, Models: []providers.Model{{Name: demo.Fax}}})
	b.config.IdleTimeout, b.config.Linger = 50*time.Millisecond, 0
	recorded := b.record()
	require.Contains(t, said(t, recorded), providers.CodeIdleTimeout)
	replayed, err := b.run(t.Context(), report.Replay, contracts.Options{})
	require.NoError(t, err)
	require.Equal(t, said(t, recorded), said(t, replayed))
}

func TestReplaysALocalModelWithItsTokenizer(t *testing.T) {
	t.Parallel()
	server := modelserver.Start(t, modelserver.Options{})
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: server.URL, Models: []providers.Model{{
		Name: "noise", ContextWindow: 4096, MaxOutputTokens: 20,
	}}})
	recorded := b.record()
	require.NoError(t, server.Stop())
	replayed, err := b.run(t.Context(), report.Replay, contracts.Options{})
	require.NoError(t, err)
	require.Equal(t, said(t, recorded), said(t, replayed))
	require.Contains(t, b.read("one"), "Local server: ")
}

// The counting endpoints are beside the answers' and go the same way.
func TestReplaysATokenizerThatAsksTheProvider(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/detokenize"):
			_, _ = w.Write([]byte(`{"prompt":"x"}`))
		case strings.HasSuffix(r.URL.Path, "/tokenize"):
			_, _ = w.Write([]byte(`{"count":1,"tokens":[1]}`))
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"{}\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
		}
	}))
	defer h.Close()
	b := setup(t, providers.Config{Kind: openaicompat.Kind, BaseURL: h.URL + "/v1", Models: []providers.Model{{
		Name: "m", ContextWindow: 120, MaxOutputTokens: 50, Tokenizer: "vllm",
	}}})
	recorded := b.record()
	require.Contains(t, said(t, recorded), contracts.CodeTokenizerLosesText)
	require.Contains(t, b.read("one"), h.URL+"/detokenize")
	h.Close()
	replayed, err := b.run(t.Context(), report.Replay, contracts.Options{})
	require.NoError(t, err)
	require.Equal(t, said(t, recorded), said(t, replayed))

	text := b.read("one")
	at := strings.Index(text, "/detokenize")
	require.NoError(t, os.WriteFile(b.file("one"), []byte(text[:at]+"/elsewhere"+text[at+len("/detokenize"):]), 0o644))
	require.ErrorContains(t, b.replay(), "POST /detokenize", "no count is made up")
}
