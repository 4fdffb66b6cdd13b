// Package tokenizer tells what a prompt weighs in a model's tokens: with tables that are part of the program
// (tokenizer/tiktoken), or by asking the provider's counting endpoint.
//
// It imports nothing of this module but tokenizer/tiktoken.
package tokenizer

import (
	"context"
	"slices"

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

// Codec turns text into tokens and back. Text is user text: nothing in it becomes a control token.
type Codec interface {
	Counter
	Encode(ctx context.Context, text string) ([]int, error)
	Decode(ctx context.Context, tokens []int) (string, error)
}

// Local is a Codec on this machine. Its Count needs no request.
type Local struct{ encoding *tiktoken.Encoding }

var _ Codec = Local{}

// NewLocal returns the embedded encoding of that name; ok is false if there is none.
func NewLocal(name string) (l Local, ok bool) {
	e, ok := tiktoken.New(name)
	return Local{e}, ok
}

// Count is the tokens of both texts and ChatTokens.
func (l Local) Count(_ context.Context, p Prompt) (int, error) {
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

// Names are the tokenizers that a configuration may name, sorted.
func Names() []string { return slices.Sorted(slices.Values(tiktoken.Names())) }
