package tokenizer_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers/tokenizer"
)

const key = "sk-canary-0123456789"

// server answers by path and keeps what it was asked.
type server struct {
	answers map[string]string
	asked   []string // path and body
	headers http.Header
}

func serve(t *testing.T, answers map[string]string) (*server, string) {
	t.Helper()
	s := &server{answers: answers}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.asked, s.headers = append(s.asked, r.Method+" "+r.URL.Path+" "+string(body)), r.Header
		answer, ok := s.answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(h.Close)
	return s, h.URL
}

func counter(t *testing.T, name, base string) tokenizer.Counter {
	t.Helper()
	c, err := tokenizer.New(name, tokenizer.Options{BaseURL: base, APIKey: key, Model: "m-1", Timeout: time.Minute})
	require.NoError(t, err)
	return c
}

var prompt = tokenizer.Prompt{System: "Obey.", User: "Say <|im_start|> \"twice\""}

func TestCountsByTheProvidersEndpoint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tokenizer, base string
		answers         map[string]string
		asked           []string
		header, value   string
	}{
		"Anthropic": {"anthropic", "", map[string]string{"/v1/messages/count_tokens": `{"input_tokens": 17}`},
			[]string{`POST /v1/messages/count_tokens {"model":"m-1","system":"Obey.","messages":[{"role":"user","content":"Say \u003c|im_start|\u003e \"twice\""}]}`},
			"X-Api-Key", key},
		"AnthropicUnderV1": {"anthropic", "/v1/", map[string]string{"/v1/messages/count_tokens": `{"input_tokens": 17}`}, nil, "Anthropic-Version", "2023-06-01"},
		"Gemini": {"gemini", "", map[string]string{"/v1beta/models/m-1:countTokens": `{"totalTokens": 17, "promptTokensDetails": []}`},
			[]string{`POST /v1beta/models/m-1:countTokens {"generateContentRequest":{"model":"models/m-1","contents":[{"role":"user","parts":[{"text":"Say \u003c|im_start|\u003e \"twice\""}]}],"systemInstruction":{"parts":[{"text":"Obey."}]}}}`},
			"X-Goog-Api-Key", key},
		"GeminiOfAVersion": {"gemini", "/v1", map[string]string{"/v1/models/m-1:countTokens": `{"totalTokens": 17}`}, nil, "X-Goog-Api-Key", key},
		"VLLM": {"vllm", "/v1", map[string]string{"/tokenize": `{"count": 17, "max_model_len": 4096, "tokens": [1, 2]}`},
			[]string{`POST /tokenize {"model":"m-1","messages":[{"role":"system","content":"Obey."},{"role":"user","content":"Say \u003c|im_start|\u003e \"twice\""}],"add_generation_prompt":true}`},
			"Authorization", "Bearer " + key},
		"LlamaCPP": {"llamacpp", "/v1", map[string]string{"/apply-template": `{"prompt": "<s>Obey."}`, "/tokenize": `{"tokens": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]}`},
			[]string{
				`POST /apply-template {"messages":[{"role":"system","content":"Obey."},{"role":"user","content":"Say \u003c|im_start|\u003e \"twice\""}]}`,
				`POST /tokenize {"content":"\u003cs\u003eObey.","add_special":true,"parse_special":true}`,
			}, "Authorization", "Bearer " + key},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url := serve(t, tc.answers)
			n, err := counter(t, tc.tokenizer, url+tc.base).Count(t.Context(), prompt)
			require.NoError(t, err)
			require.Equal(t, 17, n)
			if tc.asked != nil {
				require.Equal(t, tc.asked, s.asked)
			}
			require.Equal(t, tc.value, s.headers.Get(tc.header))
		})
	}
}

func TestWhatIsNoCountIsAnError(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"Refused": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+r.Header.Get("X-Goog-Api-Key"), http.StatusUnauthorized)
		},
		"Redirected": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/there" {
				_, _ = io.WriteString(w, `{"input_tokens":1,"totalTokens":1,"count":1,"prompt":"","tokens":[1]}`)
				return
			}
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		},
		"NoCount": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) },
		"Negative": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"input_tokens":-1,"totalTokens":-1,"count":-1}`)
		},
		"NotJSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `<html>`) },
		"Fraction": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"input_tokens":1.5,"totalTokens":1.5,"count":1.5,"prompt":1}`)
		},
		"Truncated": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = io.WriteString(w, `{}`)
		},
	} {
		for _, kind := range []string{"anthropic", "gemini", "vllm", "llamacpp"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				s := httptest.NewServer(h)
				defer s.Close()
				_, err := counter(t, kind, s.URL).Count(t.Context(), prompt)
				require.ErrorContains(t, err, "tokenizer "+kind+": ")
				for _, secret := range []string{"canary", "twice", "Obey"} {
					require.NotContains(t, err.Error(), secret)
				}
			})
		}
	}
	t.Run("NobodyThere", func(t *testing.T) {
		t.Parallel()
		_, err := counter(t, "vllm", "http://127.0.0.1:1").Count(t.Context(), prompt)
		require.ErrorContains(t, err, "no answer: ")
	})
	t.Run("TooSlow", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}))
		defer s.Close()
		c, err := tokenizer.New("vllm", tokenizer.Options{BaseURL: s.URL, Timeout: 10 * time.Millisecond})
		require.NoError(t, err)
		_, err = c.Count(t.Context(), prompt)
		require.ErrorContains(t, err, "no answer: context deadline exceeded")
	})
}

// words is a server whose tokens are numbers for words, and which takes <|im_start|> and </s> for control tokens.
func words(t *testing.T, path string) string {
	t.Helper()
	vocabulary := []string{}
	token := func(s string) int {
		for i, v := range vocabulary {
			if v == s {
				return i
			}
		}
		vocabulary = append(vocabulary, s)
		return len(vocabulary) - 1
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Content, Prompt string
			Tokens          []int
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		switch r.URL.Path {
		case "/tokenize":
			out := struct {
				Count  int   `json:"count"`
				Tokens []int `json:"tokens"`
			}{Tokens: []int{}}
			for word := range strings.SplitAfterSeq(in.Content+in.Prompt, " ") {
				if bare := strings.TrimSpace(word); bare == "<|im_start|>" || bare == "</s>" {
					out.Tokens = append(out.Tokens, token(word))
					continue
				}
				for _, letter := range word {
					out.Tokens = append(out.Tokens, token(string(letter)))
				}
			}
			out.Count = len(out.Tokens)
			_ = json.NewEncoder(w).Encode(out)
		case "/detokenize":
			text := ""
			for _, t := range in.Tokens {
				text += vocabulary[t]
			}
			_ = json.NewEncoder(w).Encode(map[string]string{path: text})
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestCodecs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		base     string
		controls []string
	}{
		"o200k_base": {"", nil}, "cl100k_base": {"", nil},
		"vllm":     {words(t, "prompt"), []string{"<|im_start|>", "</s>"}},
		"llamacpp": {words(t, "content"), []string{"<|im_start|>", "</s>"}},
	} {
		c, ok := counter(t, name, tc.base).(tokenizer.Codec)
		require.True(t, ok, name)
		for _, text := range []string{"Say <|im_start|> twice", "héllo wörld </s>", ""} {
			tokens, err := c.Encode(t.Context(), text)
			require.NoError(t, err, name)
			got, err := c.Decode(t.Context(), tokens)
			require.NoError(t, err, name)
			require.Equal(t, text, got, name)
		}
		taken, err := tokenizer.Controls(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, tc.controls, taken, name)
	}
	for _, name := range []string{"anthropic", "gemini"} {
		_, ok := counter(t, name, "https://example.com").(tokenizer.Codec)
		require.False(t, ok, "only a count is offered")
	}
	broken, ok := counter(t, "vllm", "http://127.0.0.1:1").(tokenizer.Codec)
	require.True(t, ok)
	_, err := tokenizer.Controls(t.Context(), broken)
	require.Error(t, err, "what could not be asked is not harmless")
}

func TestLocalCountHasTheChatFormat(t *testing.T) {
	t.Parallel()
	n, err := counter(t, "o200k_base", "").Count(t.Context(), tokenizer.Prompt{System: "hello world", User: "hello world"})
	require.NoError(t, err)
	require.Equal(t, 4+tokenizer.ChatTokens, n)
	require.Equal(t, 11, tokenizer.ChatTokens)
}
