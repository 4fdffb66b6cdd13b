package tokenizer

import (
	"context"
	"net/http"
	"regexp"
	"strings"
)

// anthropic counts by POST /v1/messages/count_tokens (anthropic-sdk-go v1.84.0, message.go: MessageCountTokensParams,
// MessageTokensCount). Anthropic calls the number an estimate; it may be off by a few tokens.
type anthropic struct{ remote }

func newAnthropic(o Options) anthropic {
	h := http.Header{}
	h.Set("Anthropic-Version", "2023-06-01") // the SDK's internal/requestconfig
	if o.APIKey != "" {
		h.Set("X-Api-Key", o.APIKey)
	}
	return anthropic{newRemote("anthropic", root(o.BaseURL), o, h)}
}

func (a anthropic) Count(ctx context.Context, p Prompt) (int, error) {
	var out struct {
		InputTokens *int `json:"input_tokens"`
	}
	in := struct {
		Model    string    `json:"model"`
		System   string    `json:"system,omitempty"`
		Messages []message `json:"messages"`
	}{a.opts.Model, p.System, []message{{"user", p.User}}}
	if err := a.post(ctx, "/v1/messages/count_tokens", in, &out); err != nil {
		return 0, err
	}
	return a.counted(out.InputTokens)
}

// gemini counts by POST /v1beta/models/{model}:countTokens. The system prompt goes along in generateContentRequest
// (https://ai.google.dev/api/tokens); contents alone would leave it out. The answer is CountTokensResponse of
// google.golang.org/genai v1.77.0 (types.go).
type gemini struct{ remote }

var version = regexp.MustCompile(`/v[0-9]+((alpha|beta)[0-9]*)?$`)

func newGemini(o Options) gemini {
	h := http.Header{}
	if o.APIKey != "" {
		h.Set("X-Goog-Api-Key", o.APIKey)
	}
	base := strings.TrimRight(o.BaseURL, "/")
	if !version.MatchString(base) {
		base += "/v1beta"
	}
	return gemini{newRemote("gemini", base, o, h)}
}

func (g gemini) Count(ctx context.Context, p Prompt) (int, error) {
	type part struct {
		Text string `json:"text"`
	}
	type content struct {
		Role  string `json:"role,omitempty"`
		Parts []part `json:"parts"`
	}
	type request struct {
		Model             string    `json:"model"`
		Contents          []content `json:"contents"`
		SystemInstruction *content  `json:"systemInstruction,omitempty"`
	}
	in := request{Model: g.model(), Contents: []content{{"user", []part{{p.User}}}}}
	if p.System != "" {
		in.SystemInstruction = &content{Parts: []part{{p.System}}}
	}
	var out struct {
		TotalTokens *int `json:"totalTokens"`
	}
	err := g.post(ctx, "/"+g.model()+":countTokens", struct {
		Request request `json:"generateContentRequest"`
	}{in}, &out)
	if err != nil {
		return 0, err
	}
	return g.counted(out.TotalTokens)
}

// model is the resource's name.
func (g gemini) model() string {
	if strings.Contains(g.opts.Model, "/") { // models/…, tunedModels/…
		return g.opts.Model
	}
	return "models/" + g.opts.Model
}
