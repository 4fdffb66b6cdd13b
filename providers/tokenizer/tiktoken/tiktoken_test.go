package tiktoken_test

import (
	"os/exec"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer/codec"
	"pgregory.net/rapid"

	"github.com/docket-gateway/docket/providers/tokenizer/tiktoken"
)

func encoding(t *testing.T, name string) *tiktoken.Encoding {
	t.Helper()
	e, ok := tiktoken.New(name)
	require.True(t, ok)
	require.Equal(t, name, e.Name())
	return e
}

// The expected tokens are those of OpenAI's own tiktoken (tests/test_encoding.py, and its README for o200k_base).
func TestEncodesAsTheOriginal(t *testing.T) {
	t.Parallel()
	for name, texts := range map[string]map[string][]int{
		"cl100k_base": {
			"hello world": {15339, 1917}, "rer": {38149}, "'rer": {2351, 81}, "today\n ": {31213, 198, 220},
			"today\n \n": {31213, 27907}, "today\n  \n": {31213, 14211},
			"👍": {9468, 239, 235}, "": {},
		},
		"o200k_base": {"hello world": {24912, 2375}, "": {}},
	} {
		e := encoding(t, name)
		for text, want := range texts {
			got, err := e.Encode(text)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s %q", name, text)
			n, err := e.Count(text)
			require.NoError(t, err)
			require.Equal(t, len(want), n)
		}
	}
}

func TestControlTokensInTextAreText(t *testing.T) {
	t.Parallel()
	for _, name := range tiktoken.Names() {
		e := encoding(t, name)
		for _, control := range []string{"<|endoftext|>", "<|endofprompt|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|start|>", "<|message|>"} {
			tokens, err := e.Encode("Say " + control + " twice")
			require.NoError(t, err)
			require.Greater(t, len(tokens), 5, "%s: %s is made of several tokens", name, control)
			text, err := e.Decode(tokens) // which knows no control token
			require.NoError(t, err)
			require.Equal(t, "Say "+control+" twice", text)
		}
		for _, special := range []int{-1, 100257, 100276, 199999, 200018, 1 << 40} { // <|endoftext|>, <|endofprompt|> of both
			if name == "o200k_base" && (special == 100257 || special == 100276) {
				continue // text there
			}
			_, err := e.Decode([]int{special})
			require.Error(t, err, "%s %d", name, special)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, name := range tiktoken.Names() {
		e := encoding(t, name)
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.OneOf(rapid.String(), rapid.StringMatching(`([ \n\t\r]|[a-z']{1,9}|<\|[a-z_]+\|>|\pL|\pN){0,60}`)).Draw(t, "text")
			tokens, err := e.Encode(text)
			require.NoError(t, err)
			got, err := e.Decode(tokens)
			require.NoError(t, err)
			require.Equal(t, text, got)
			n, err := e.Count(text)
			require.NoError(t, err)
			require.Len(t, tokens, n)
			require.LessOrEqual(t, n, len(text), "no token without a byte")
		})
	}
}

// A long text is encoded in parts. Compared is with the same text in one piece.
// The cases of a contract are asked at once, and each takes its prompt there and back.
func TestManyDecodeAtOnce(t *testing.T) {
	t.Parallel()
	for _, name := range tiktoken.Names() {
		e := encoding(t, name)
		tokens, err := e.Encode("hello world")
		require.NoError(t, err)
		texts := make([]string, 8)
		errs := make([]error, len(texts))
		var wg sync.WaitGroup
		for i := range texts {
			wg.Go(func() { texts[i], errs[i] = e.Decode(tokens) })
		}
		wg.Wait()
		for i := range texts {
			require.NoError(t, errs[i], name)
			require.Equal(t, "hello world", texts[i], name)
		}
	}
}

func TestPartsDoNotShow(t *testing.T) {
	t.Parallel()
	whole := map[string]*codec.Codec{"cl100k_base": codec.NewCl100kBase(), "o200k_base": codec.NewO200kBase()}
	for _, name := range tiktoken.Names() {
		e := encoding(t, name)
		rapid.Check(t, func(t *rapid.T) {
			text := strings.Join(rapid.SliceOfN(rapid.StringMatching(`(\pL|\pM){0,12}('s|'T|[0-9]{0,5})[ \n\t\r/。、,.(<|>'"😀€]{0,4}`), 100, 150).Draw(t, "text"), " ")
			got, err := e.Encode(text)
			require.NoError(t, err)
			want, _, err := whole[name].Encode(text)
			require.NoError(t, err)
			require.Len(t, got, len(want))
			for i := range want {
				require.EqualValues(t, want[i], got[i])
			}
		})
	}
}

func TestEveryLengthIsCutWithoutLoss(t *testing.T) {
	t.Parallel()
	e := encoding(t, "o200k_base")
	for _, unit := range []string{"a", "é", "漢", "😀", "a b"} {
		for size := 1000; size < 1060; size++ {
			text := strings.ToValidUTF8(strings.Repeat(unit, size)[:size], "")
			tokens, err := e.Encode(text)
			require.NoError(t, err)
			got, err := e.Decode(tokens)
			require.NoError(t, err)
			require.Equal(t, text, got)
		}
	}
}

func TestHardCutsCostFewTokens(t *testing.T) {
	t.Parallel()
	whole := codec.NewO200kBase()
	for _, unit := range []string{"a", "漢字", "1", " ", "\n", " \n"} {
		text := strings.Repeat(unit, 8<<10/len(unit))
		got, err := encoding(t, "o200k_base").Encode(text)
		require.NoError(t, err)
		want, _, err := whole.Encode(text)
		require.NoError(t, err)
		require.InDelta(t, len(want), len(got), 8*3, "%q: more than three tokens a KiB", unit)
	}
}

// What bounds a prompt's tokens without counting rests on it.
func TestNoTokenIsLongerThanTheBound(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"cl100k_base": 100256, "o200k_base": 199998} {
		e := encoding(t, name)
		longest := 0
		for token := range size {
			text, err := e.Decode([]int{token})
			require.NoError(t, err)
			longest = max(longest, len(text))
		}
		require.LessOrEqual(t, longest, tiktoken.MaxTokenBytes, name)
		require.Greater(t, longest, tiktoken.MaxTokenBytes/4, "the bound is not absurd")
	}
}

func TestKnowsWhatIsEmbedded(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"cl100k_base", "o200k_base"}, tiktoken.Names())
	for _, name := range []string{"", "o200k_harmony", "p50k_base", "O200K_BASE"} {
		_, ok := tiktoken.New(name)
		require.False(t, ok, name)
	}
}

// No package below this one can open a connection, so no encoding can be downloaded.
func TestNothingHereKnowsANetwork(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "github.com/tiktoken-go/tokenizer/codec")
	for _, d := range deps {
		require.NotContains(t, []string{"net", "net/http", "os/exec", "plugin"}, d)
	}
}

func TestInvalidUTF8IsCounted(t *testing.T) {
	t.Parallel()
	text := "a\xff\xfeb"
	require.False(t, utf8.ValidString(text))
	for _, name := range tiktoken.Names() {
		_, err := encoding(t, name).Count(text)
		require.NoError(t, err)
	}
}
