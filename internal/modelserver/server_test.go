package modelserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/modelserver"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/openaicompat"
	"github.com/docket-gateway/docket/providers/tokenizer"
)

// reporter lets a test wait for the acknowledgement.
type reporter struct{ acknowledged chan struct{} }

func newReporter() reporter { return reporter{make(chan struct{})} }

func (r reporter) Acknowledged(providers.Acknowledgement) { close(r.acknowledged) }
func (reporter) Progress()                                {}
func (reporter) Unknown(providers.Failure)                {}

// adapter is Docket's own for the kind openai-compatible.
func adapter(t *testing.T, s *modelserver.Server) *openaicompat.Provider {
	t.Helper()
	made, err := openaicompat.New(providers.Config{Name: "local", Kind: openaicompat.Kind, BaseURL: s.URL + "/v1",
		AckTimeout: await.Patience, IdleTimeout: await.Patience, TotalTimeout: 2 * await.Patience, Linger: time.Second})
	require.NoError(t, err)
	p, ok := made.(*openaicompat.Provider)
	require.True(t, ok)
	t.Cleanup(p.Close)
	return p
}

func counter(t *testing.T, s *modelserver.Server) tokenizer.Codec {
	t.Helper()
	c, err := tokenizer.New("llamacpp", tokenizer.Options{BaseURL: s.URL + "/v1", Model: "noise", Timeout: await.Patience})
	require.NoError(t, err)
	codec, ok := c.(tokenizer.Codec)
	require.True(t, ok)
	return codec
}

const closed = `{"type": "object", "additionalProperties": false, "required": ["kind", "text"], "properties": {
	"kind": {"type": "string", "enum": ["good", "bad"]}, "text": {"type": "string", "minLength": 1, "maxLength": 30}}}`

func TestAnswersAreConstrainedByTheSchemaAndCounted(t *testing.T) {
	t.Parallel()
	s := modelserver.Start(t, modelserver.Options{})
	p, codec := adapter(t, s), counter(t, s)
	for name, req := range map[string]providers.Request{
		"Plain":   {System: "Obey.", Prompt: "Say something."},
		"Unicode": {System: "Gehorche, bitte schön.", Prompt: "说点什么 🖨️"},
		"Marks":   {System: "Obey.", Prompt: "</s><s> are control tokens here"},
		"Alone":   {Prompt: "No system prompt"},
		"Again":   {System: "Obey.", Prompt: "Say something else, after the same beginning."},
	} {
		req.AttemptID, req.Task, req.Model, req.Schema, req.MaxOutputTokens = "att_"+name, "t", "noise", json.RawMessage(closed), 200
		out := p.Send(t.Context(), req, newReporter())
		require.Equal(t, providers.Completed, out.Kind, "%s: %+v", name, out.Failure)
		var output struct{ Kind, Text string }
		require.NoError(t, json.Unmarshal(out.Output, &output), "%s", out.Output)
		require.Contains(t, []string{"good", "bad"}, output.Kind)
		require.NotEmpty(t, output.Text)
		require.LessOrEqual(t, len([]rune(output.Text)), 30)

		counted, err := codec.Count(t.Context(), tokenizer.Prompt{System: req.System, User: req.Prompt})
		require.NoError(t, err)
		require.Equal(t, counted, *out.Usage.InputTokens, name)
		require.Greater(t, counted, len(req.System)+len(req.Prompt)-10, "one for each byte, but few for control tokens")
		require.Greater(t, *out.Usage.OutputTokens, len(output.Text))
	}
	require.Empty(t, s.Log())
}

func TestTokensRoundTrip(t *testing.T) {
	t.Parallel()
	codec := counter(t, modelserver.Start(t, modelserver.Options{}))
	for _, text := range []string{"plain", " a  b ", "naïve 🖨️\n\ttabs", `{"json": "\u2581"}`} {
		tokens, err := codec.Encode(t.Context(), text)
		require.NoError(t, err)
		got, err := codec.Decode(t.Context(), tokens)
		require.NoError(t, err)
		require.Equal(t, text, got)
	}
	taken, err := tokenizer.Controls(t.Context(), codec)
	require.NoError(t, err)
	require.Equal(t, []string{"<s>", "</s>"}, taken, "those of this model, and none of others")
}

func TestTheTokenLimitEndsAnAnswer(t *testing.T) {
	t.Parallel()
	s := modelserver.Start(t, modelserver.Options{Context: 512})
	p := adapter(t, s)
	req := providers.Request{AttemptID: "att_limit", Model: "noise", Prompt: "go on", MaxOutputTokens: 25}
	out := p.Send(t.Context(), req, newReporter())
	require.Equal(t, providers.Failed, out.Kind)
	require.Equal(t, providers.CodeTruncated, out.Failure.Code)
	require.Equal(t, "length", out.FinishReason)
	require.Equal(t, 25, *out.Usage.OutputTokens)

	// Without a limit the context is one.
	req.MaxOutputTokens = 0
	out = p.Send(t.Context(), req, newReporter())
	require.Equal(t, "length", out.FinishReason)
	require.LessOrEqual(t, *out.Usage.InputTokens+*out.Usage.OutputTokens, 512+1)
	require.Greater(t, *out.Usage.OutputTokens, 300)

	req.Prompt = strings.Repeat("too long ", 100)
	out = p.Send(t.Context(), req, newReporter())
	require.Equal(t, providers.Failed, out.Kind)
	require.Contains(t, out.Failure.Message, "context_length_exceeded")
}

func TestAClientThatGoesStopsTheGeneration(t *testing.T) {
	t.Parallel()
	s := modelserver.Start(t, modelserver.Options{Context: 32768, Parallel: 1})
	p := adapter(t, s)
	send := func(id string, limit int) (cancel context.CancelFunc, done <-chan providers.Outcome) {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		out := make(chan providers.Outcome, 1)
		go func() {
			out <- p.Send(ctx, providers.Request{AttemptID: id, Model: "noise", Prompt: id, MaxOutputTokens: limit}, newReporter())
		}()
		return cancel, out
	}
	goAway, first := send("att_goes", 0)
	await.Until(t, "a stream", func() bool {
		texts, err := s.Running(t.Context())
		require.NoError(t, err)
		return len(texts) == 1 && texts[0] > 3
	})
	_, second := send("att_waits", 5) // for the only place
	goAway()
	require.Equal(t, providers.Unknown, (<-first).Kind)
	require.Equal(t, 5, *(<-second).Usage.OutputTokens, "the place is free again")
	var over []modelserver.Completion
	await.Until(t, "both in the log", func() bool { // which the server writes after it has answered
		var err error
		over, err = s.Completions()
		require.NoError(t, err)
		return len(over) == 2
	})
	require.Equal(t, "att_goes", over[0].Request)
	require.Equal(t, "abandoned", over[0].Finish)
	require.Greater(t, over[0].Texts, 3)
	require.Less(t, over[0].Texts, 30000, "far from the end")
	require.Equal(t, "length", over[1].Finish)
}

func TestRefusesWhatItCannotServe(t *testing.T) {
	t.Parallel()
	s := modelserver.Start(t, modelserver.Options{})
	for _, row := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/v1/chat/completions", `{`, 400, "not a JSON object"},
		{"POST", "/v1/chat/completions", `[]`, 400, "not a JSON object"},
		{"POST", "/v1/chat/completions", `{}`, 400, "messages: "},
		{"POST", "/v1/chat/completions", `{"messages": [null]}`, 400, "messages[0]: "},
		{"POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": [{"type": "text"}]}]}`, 400, "messages[0]: "},
		{"POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "n": 2}`, 400, "n: "},
		{"POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "tools": []}`, 400, "tools: "},
		{"POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "max_tokens": 0}`, 400, "max_tokens: "},
		{"POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_object"}}`, 400, "response_format: "},
		{"POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_schema"}}`, 400, "response_format: "},
		{"POST", "/v1/chat/completions", `{"x": "` + strings.Repeat("x", 5<<20) + `"}`, 413, "bytes"},
		{"POST", "/tokenize", `{}`, 400, "content: "},
		{"POST", "/detokenize", `{"tokens": [100000]}`, 400, "tokens: "},
		{"GET", "/v1/engines", "", 404, "nothing here"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), row.method, s.URL+row.path, strings.NewReader(row.body))
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		raw, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, row.status, res.StatusCode, "%s", raw)
		told, ok := openaicompat.ReadErrorBody(raw)
		require.True(t, ok, "%s", raw)
		require.Contains(t, told.Message, row.says)
	}
	require.Empty(t, s.Log())
}

func TestTellsWhyItDoesNotStart(t *testing.T) {
	t.Parallel()
	installed, err := modelserver.Install(t.Context())
	require.NoError(t, err)
	_, err = installed.Start(t.Context(), modelserver.Options{Model: "/no/such.gguf"})
	require.ErrorContains(t, err, "/no/such.gguf")
}
