// Package tiktoken counts and encodes text with OpenAI's encodings. Their tables are part of the program; nothing here can
// reach a network, and a test holds that no package below it can.
//
// Text is text: what looks like a control token (<|endoftext|>, <|im_start|>) is encoded as the characters that it is made
// of, and no token that Encode returns is a control token.
package tiktoken

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	// v0.7.0, and not a newer one: the generated matcher of v0.8 to v0.10 passes characters over (U+007F) and takes
	// minutes for " \n" many times. The tests tell.
	"github.com/tiktoken-go/tokenizer/codec"
)

// MaxTokenBytes is more than any token of the encodings has, in bytes.
const MaxTokenBytes = 256

// encodings are those that are embedded.
var encodings = map[string]func() *codec.Codec{
	"o200k_base":  codec.NewO200kBase,
	"cl100k_base": codec.NewCl100kBase,
}

// Names are the encodings that New knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(encodings)) }

// Encoding is one of OpenAI's encodings. It is safe for concurrent use. Its tables are built when they are first used, which
// takes about 0.1 s and 20 MB.
type Encoding struct {
	name    string
	codec   func() *codec.Codec
	decoder func() *codec.Codec // the same one, ready to decode
}

// New returns an encoding by its name. ok is false if it is not embedded; none is ever downloaded.
func New(name string) (e *Encoding, ok bool) {
	build, ok := encodings[name]
	if !ok {
		return nil, false
	}
	e = &Encoding{name: name, codec: sync.OnceValue(build)}
	e.decoder = sync.OnceValue(func() *codec.Codec {
		c := e.codec()
		// The first Decode of a Codec builds a table without a lock. Two at once would end the process.
		_, _ = c.Decode(nil) // no token is an invalid one
		return c
	})
	return e, true
}

// Name is the encoding's name.
func (e *Encoding) Name() string { return e.name }

// Count is the number of tokens of a text. The time it takes grows with the text's length and with nothing else: a second
// or two for a prompt of 2 MiB.
func (e *Encoding) Count(text string) (int, error) {
	tokens, err := e.Encode(text)
	return len(tokens), err
}

// Encode returns the text's tokens. They are exactly OpenAI's, but for text that goes on for a KiB with neither a space nor
// punctuation: there it may be some few tokens more for each KiB.
func (e *Encoding) Encode(text string) ([]int, error) {
	c := e.codec()
	tokens := []int{}
	for part := range parts(text) {
		ids, _, err := c.Encode(part)
		if err != nil { // not reachable: the pattern has no time-out
			return nil, fmt.Errorf("encode by %s: %w", e.name, err)
		}
		for _, id := range ids {
			tokens = append(tokens, int(id))
		}
	}
	return tokens, nil
}

// Decode is Encode's inverse: it gives the same bytes back. It fails on a token that is none of text, such as a control
// token.
func (e *Encoding) Decode(tokens []int) (string, error) {
	ids := make([]uint, len(tokens))
	for i, t := range tokens {
		if t < 0 {
			return "", fmt.Errorf("decode by %s: %d is no token", e.name, t)
		}
		ids[i] = uint(t)
	}
	text, err := e.decoder().Decode(ids)
	if err != nil {
		return "", fmt.Errorf("decode by %s: %w", e.name, err)
	}
	return text, nil
}
