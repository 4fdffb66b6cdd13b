package tokenizer

import "context"

// vllm asks a vLLM server (vllm/entrypoints/serve/tokenize/protocol.py: TokenizeChatRequest, TokenizeCompletionRequest,
// DetokenizeRequest). The endpoints are beside /v1, not under it.
type vllm struct{ remote }

var _ Codec = vllm{}

func newVLLM(o Options) vllm { return vllm{newRemote("vllm", root(o.BaseURL), o, bearer(o))} }

type vllmTokens struct {
	Count  *int  `json:"count"`
	Tokens []int `json:"tokens"`
}

// Count is of the messages in the model's chat template, up to where the answer begins.
func (v vllm) Count(ctx context.Context, p Prompt) (int, error) {
	var out vllmTokens
	err := v.post(ctx, "/tokenize", struct {
		Model               string    `json:"model"`
		Messages            []message `json:"messages"`
		AddGenerationPrompt bool      `json:"add_generation_prompt"`
	}{v.opts.Model, p.messages(), true}, &out)
	if err != nil {
		return 0, err
	}
	return v.counted(out.Count)
}

func (v vllm) Encode(ctx context.Context, text string) ([]int, error) {
	var out vllmTokens
	err := v.post(ctx, "/tokenize", struct {
		Model            string `json:"model"`
		Prompt           string `json:"prompt"`
		AddSpecialTokens bool   `json:"add_special_tokens"`
	}{v.opts.Model, text, false}, &out)
	return out.Tokens, err
}

func (v vllm) Decode(ctx context.Context, tokens []int) (string, error) {
	var out struct {
		Prompt string `json:"prompt"`
	}
	err := v.post(ctx, "/detokenize", struct {
		Model  string `json:"model"`
		Tokens []int  `json:"tokens"`
	}{v.opts.Model, tokens}, &out)
	return out.Prompt, err
}

// llamacpp asks llama.cpp's server (tools/server/README.md: /apply-template, /tokenize, /detokenize). It serves one model.
type llamacpp struct{ remote }

var _ Codec = llamacpp{}

func newLlamaCPP(o Options) llamacpp {
	return llamacpp{newRemote("llamacpp", root(o.BaseURL), o, bearer(o))}
}

// Count is of the messages in the model's chat template, which is tokenized as the server does it: control tokens are parsed
// in it, since the template is made of them.
func (l llamacpp) Count(ctx context.Context, p Prompt) (int, error) {
	var rendered struct {
		Prompt *string `json:"prompt"`
	}
	err := l.post(ctx, "/apply-template", struct {
		Messages []message `json:"messages"`
	}{p.messages()}, &rendered)
	if err != nil {
		return 0, err
	}
	if rendered.Prompt == nil {
		return l.counted(nil)
	}
	tokens, err := l.tokenize(ctx, *rendered.Prompt, true)
	if err != nil {
		return 0, err
	}
	n := len(tokens)
	return l.counted(&n)
}

func (l llamacpp) Encode(ctx context.Context, text string) ([]int, error) {
	return l.tokenize(ctx, text, false)
}

func (l llamacpp) tokenize(ctx context.Context, text string, whole bool) ([]int, error) {
	var out struct {
		Tokens []int `json:"tokens"`
	}
	err := l.post(ctx, "/tokenize", struct {
		Content      string `json:"content"`
		AddSpecial   bool   `json:"add_special"`
		ParseSpecial bool   `json:"parse_special"`
	}{text, whole, true}, &out)
	if err == nil && out.Tokens == nil {
		_, err = l.counted(nil)
	}
	return out.Tokens, err
}

func (l llamacpp) Decode(ctx context.Context, tokens []int) (string, error) {
	var out struct {
		Content string `json:"content"`
	}
	err := l.post(ctx, "/detokenize", struct {
		Tokens []int `json:"tokens"`
	}{tokens}, &out)
	return out.Content, err
}
