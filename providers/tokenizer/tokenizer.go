// Package tokenizer tells what a prompt weighs in a model's tokens: with tables that are part of the program
// (tokenizer/tiktoken), or by asking the provider's counting endpoint.
//
// It imports nothing of this module but tokenizer/tiktoken.
package tokenizer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docket-gateway/docket/providers/tokenizer/tiktoken"
)

// ChatTokens is what a chat request of a system and a user message takes beside the texts: three tokens and the role's name
// for each message, and three that begin the answer, as OpenAI's cookbook counts them ("How to count tokens with tiktoken",
// for gpt-3.5-turbo to gpt-4o). How a provider writes an output schema into its prompt is not documented, so that is not
// counted.
const ChatTokens = 2*(3+1) + 3

// Prompt is a rendered prompt.
type Prompt struct {
	System string
	User   string
}

// Bytes is the length of its texts.
func (p Prompt) Bytes() int { return len(p.System) + len(p.User) }

// Counter counts a prompt's tokens as one model's tokenizer has them, the chat format's own among them.
type Counter interface {
	Count(ctx context.Context, p Prompt) (int, error)
}

// Codec turns text into tokens and back, as the provider does with the text of a message. Whether text of users can become a
// control token there is what Controls says.
type Codec interface {
	Counter
	Encode(ctx context.Context, text string) ([]int, error)
	Decode(ctx context.Context, tokens []int) (string, error)
}

// controls are what the control tokens of common models look like.
var controls = []string{
	"<|endoftext|>", "<|endofprompt|>", "<|im_start|>", "<|im_end|>", "<|start_header_id|>", "<|eot_id|>", "<|begin_of_text|>",
	"<|start|>", "<|message|>", "<|end|>", "<|user|>", "<|assistant|>", "<start_of_turn>", "<end_of_turn>", "<s>", "</s>", "[INST]", "[/INST]",
}

// Controls returns which texts that look like control tokens the codec takes for them: those that come back from a single
// token.
func Controls(ctx context.Context, c Codec) ([]string, error) {
	var taken []string
	for _, text := range controls {
		tokens, err := c.Encode(ctx, "a "+text+" b")
		if err != nil {
			return nil, err
		}
		for _, token := range tokens {
			got, err := c.Decode(ctx, []int{token})
			if err != nil {
				return nil, err
			}
			if strings.TrimSpace(got) == text {
				taken = append(taken, text)
				break
			}
		}
	}
	return taken, nil
}

// Local is a Codec on this machine. Its Count needs no request.
type Local struct{ encoding *tiktoken.Encoding }

var _ Codec = Local{}

// NewLocal returns the embedded encoding of that name; ok is false if there is none.
func NewLocal(name string) (l Local, ok bool) {
	e, ok := tiktoken.New(name)
	return Local{e}, ok
}

// Count implements Counter.
func (l Local) Count(_ context.Context, p Prompt) (int, error) { return l.CountHere(p) }

// CountHere is Count without a context, since nobody is asked: the tokens of both texts and ChatTokens.
func (l Local) CountHere(p Prompt) (int, error) {
	n := ChatTokens
	for _, text := range []string{p.System, p.User} {
		part, err := l.encoding.Count(text)
		if err != nil {
			return 0, err //nolint:wrapcheck // says what it was about
		}
		n += part
	}
	return n, nil
}

// Encode implements Codec.
func (l Local) Encode(_ context.Context, text string) ([]int, error) { return l.encoding.Encode(text) } //nolint:wrapcheck // see Count

// Decode implements Codec.
func (l Local) Decode(_ context.Context, tokens []int) (string, error) {
	return l.encoding.Decode(tokens) //nolint:wrapcheck // see Count
}

// remotes ask the provider.
var remotes = map[string]func(Options) Counter{
	"anthropic": func(o Options) Counter { return newAnthropic(o) },
	"gemini":    func(o Options) Counter { return newGemini(o) },
	"llamacpp":  func(o Options) Counter { return newLlamaCPP(o) },
	"vllm":      func(o Options) Counter { return newVLLM(o) },
}

// Names are the tokenizers that a configuration may name, sorted.
func Names() []string {
	return slices.Sorted(slices.Values(append(tiktoken.Names(), slices.Collect(maps.Keys(remotes))...)))
}

// New returns the tokenizer of that name. It opens no connection. The error says what is wrong with the name.
func New(name string, o Options) (Counter, error) {
	if local, ok := NewLocal(name); ok {
		return local, nil
	}
	build, ok := remotes[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("%q is not one of: %s", name, strings.Join(Names(), ", "))
	case o.BaseURL == "":
		return nil, fmt.Errorf("%q asks the provider, which has no base_url", name)
	}
	return build(o), nil
}
