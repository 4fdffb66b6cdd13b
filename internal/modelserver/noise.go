package modelserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
)

// The noise model's shape. It is as small as llama.cpp's attention takes it, and the file has about 400 KB.
const (
	width         = 64 // of the embedding; one head has width/heads
	heads         = 4
	layers        = 2
	hidden        = 128 // of the feed-forward part
	contextLength = 32768
)

// The vocabulary: three control tokens, the 256 bytes, and the mark that SentencePiece writes for a space.
const (
	tokenUnknown = iota
	tokenBegin
	tokenEnd
	tokenByte0
	tokenSpace = tokenByte0 + 256
	vocabulary = tokenSpace + 1
)

// Types of tokens, as llama.cpp's llama_token_type numbers them.
const (
	normalToken  = 1
	unknownToken = 2
	controlToken = 3
	byteToken    = 6
)

// template is the model's chat template (Jinja). Its marks are plain text, not control tokens.
const template = `{{ bos_token }}{% for message in messages %}[{{ message.role }}]
{{ message.content }}
{% endfor %}{% if add_generation_prompt %}[assistant]
{% endif %}`

// NoiseModel writes a language model of the llama architecture with random weights and a byte tokenizer, as a GGUF file. The
// same seed gives the same bytes on every machine.
//
// What it says is noise, but noise of a kind: lower-case letters by far before anything else, and an end (or the quote that
// closes a JSON string) last of all. A grammar can therefore be fulfilled in few tokens, one for each letter, and what nothing
// bounds goes on up to the token limit, whatever the rounding of a processor's arithmetic.
func NoiseModel(seed uint64) []byte {
	weights := random{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // no secret, and the same every time
	g := &gguf{}

	g.meta("general.architecture", "llama")
	g.meta("general.name", "noise")
	g.meta("llama.context_length", uint32(contextLength))
	g.meta("llama.embedding_length", uint32(width))
	g.meta("llama.block_count", uint32(layers))
	g.meta("llama.feed_forward_length", uint32(hidden))
	g.meta("llama.attention.head_count", uint32(heads))
	g.meta("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	g.meta("llama.rope.dimension_count", uint32(width/heads))

	tokens, types, scores := make([]string, vocabulary), make([]int32, vocabulary), make([]float32, vocabulary)
	tokens[tokenUnknown], types[tokenUnknown] = "<unk>", unknownToken
	tokens[tokenBegin], types[tokenBegin] = "<s>", controlToken
	tokens[tokenEnd], types[tokenEnd] = "</s>", controlToken
	for b := range 256 {
		tokens[tokenByte0+b], types[tokenByte0+b] = fmt.Sprintf("<0x%02X>", b), byteToken
	}
	tokens[tokenSpace], types[tokenSpace] = "\u2581", normalToken
	g.meta("tokenizer.ggml.model", "llama")
	g.meta("tokenizer.ggml.tokens", tokens)
	g.meta("tokenizer.ggml.scores", scores)
	g.meta("tokenizer.ggml.token_type", types)
	g.meta("tokenizer.ggml.unknown_token_id", uint32(tokenUnknown))
	g.meta("tokenizer.ggml.bos_token_id", uint32(tokenBegin))
	g.meta("tokenizer.ggml.eos_token_id", uint32(tokenEnd))
	g.meta("tokenizer.ggml.add_bos_token", true)
	g.meta("tokenizer.ggml.add_eos_token", false)
	g.meta("tokenizer.ggml.add_space_prefix", false)
	g.meta("tokenizer.chat_template", template)

	// The first number of every embedding is the same and no layer adds to it, so that the first column of the output
	// weights is a bias.
	embeddings := weights.matrix(vocabulary, width, 1)
	setColumn(embeddings, width, func(int) float32 { return 4 })
	g.tensor("token_embd.weight", embeddings, width, vocabulary)
	for l := range layers {
		name := func(part string) string { return fmt.Sprintf("blk.%d.%s.weight", l, part) }
		g.tensor(name("attn_norm"), ones(width), width)
		g.tensor(name("attn_q"), weights.matrix(width, width, 0.25), width, width)
		g.tensor(name("attn_k"), weights.matrix(width, width, 0.25), width, width)
		g.tensor(name("attn_v"), weights.matrix(width, width, 0.25), width, width)
		g.tensor(name("attn_output"), addsNothingToTheFirst(weights.matrix(width, width, 0.125), width), width, width)
		g.tensor(name("ffn_norm"), ones(width), width)
		g.tensor(name("ffn_gate"), weights.matrix(hidden, width, 0.25), width, hidden)
		g.tensor(name("ffn_up"), weights.matrix(hidden, width, 0.25), width, hidden)
		g.tensor(name("ffn_down"), addsNothingToTheFirst(weights.matrix(width, hidden, 0.125), hidden), hidden, width)
	}
	g.tensor("output_norm.weight", ones(width), width)
	output := weights.matrix(vocabulary, width, 0.25)
	setColumn(output, width, bias)
	g.tensor("output.weight", output, width, vocabulary)
	return g.bytes()
}

// bias says how likely a token is, whatever came before.
func bias(token int) float32 {
	b := token - tokenByte0
	switch {
	case b >= 'a' && b <= 'z', token == tokenSpace:
		return 8
	case b == '"', b < ' ', b > '~': // also the control tokens
		return -8
	}
	return 0
}

// random gives weights that are the same on every machine: no arithmetic here rounds.
type random struct{ source *rand.Rand }

// matrix has rows of columns, each between -scale and scale. The scale is a power of two.
func (r random) matrix(rows, columns int, scale float32) []float32 {
	m := make([]float32, rows*columns)
	for i := range m {
		m[i] = scale * float32(int32(r.source.Uint32())>>8) / (1 << 23)
	}
	return m
}

func ones(n int) []float32 { return slices.Repeat([]float32{1}, n) }

func setColumn(m []float32, columns int, value func(row int) float32) {
	for row := range len(m) / columns {
		m[row*columns] = value(row)
	}
}

func addsNothingToTheFirst(m []float32, columns int) []float32 {
	clear(m[:columns])
	return m
}

// gguf is a GGUF file of version 3 (ggml's docs/gguf.md): little-endian, with tensors of float32.
type gguf struct {
	values, infos, data bytes.Buffer
	valueCount          uint64
	tensorCount         uint64
}

// Types of values, as the specification numbers them.
const (
	ggufUint32  = uint32(4)
	ggufInt32   = uint32(5)
	ggufFloat32 = uint32(6)
	ggufBool    = uint32(7)
	ggufString  = uint32(8)
	ggufArray   = uint32(9)

	ggufVersion   = uint32(3)
	ggmlFloat32   = uint32(0) // type of a tensor
	ggufAlignment = 32        // the default
)

// write appends fixed-size values, and strings with their length in front.
func write(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			write(b, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(err) // only for a type without a fixed size
		}
	}
}

func (g *gguf) meta(key string, value any) {
	g.valueCount++
	write(&g.values, key)
	switch v := value.(type) {
	case uint32:
		write(&g.values, ggufUint32, v)
	case float32:
		write(&g.values, ggufFloat32, v)
	case bool:
		write(&g.values, ggufBool, v)
	case string:
		write(&g.values, ggufString, v)
	case []string:
		write(&g.values, ggufArray, ggufString, uint64(len(v)))
		for _, s := range v {
			write(&g.values, s)
		}
	case []int32:
		write(&g.values, ggufArray, ggufInt32, uint64(len(v)), v)
	case []float32:
		write(&g.values, ggufArray, ggufFloat32, uint64(len(v)), v)
	default:
		panic(fmt.Sprintf("gguf: a value of type %T", value))
	}
}

// tensor adds one; its fastest dimension, the length of a row, comes first.
func (g *gguf) tensor(name string, weights []float32, dimensions ...uint64) {
	g.tensorCount++
	write(&g.infos, name, uint32(len(dimensions)), dimensions, ggmlFloat32, uint64(g.data.Len()))
	write(&g.data, weights)
	pad(&g.data)
}

func (g *gguf) bytes() []byte {
	var b bytes.Buffer
	b.WriteString("GGUF")
	write(&b, ggufVersion, g.tensorCount, g.valueCount)
	b.Write(g.values.Bytes())
	b.Write(g.infos.Bytes())
	pad(&b)
	b.Write(g.data.Bytes())
	return b.Bytes()
}

func pad(b *bytes.Buffer) { b.Write(make([]byte, (ggufAlignment-b.Len()%ggufAlignment)%ggufAlignment)) }
