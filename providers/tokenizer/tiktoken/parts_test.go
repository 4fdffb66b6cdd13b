package tiktoken

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What is encoded at once is bounded, so no text takes the square of its length: 240 KB of Chinese would take half a minute,
// and " \n" as often some minutes.
func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"a", " ", "\n", "漢字", "'", "1", "a1 ", "\U0001F468\u200d", "=", " \n", "\n ", "é", "word, ", "\xff\xfe"} {
		for _, size := range []int{0, 1, maxPart - 1, maxPart, maxPart + 1, maxPart + 3, 5*maxPart + 7, 1 << 18} {
			text := strings.Repeat(unit, size/len(unit)+1)[:size]
			var all strings.Builder
			for part := range parts(text) {
				require.NotEmpty(t, part)
				require.LessOrEqual(t, len(part), maxPart, "%q", unit)
				if utf8.ValidString(text) {
					require.True(t, utf8.ValidString(part), "%q: a character was cut", unit)
				}
				all.WriteString(part)
			}
			require.Equal(t, text, all.String())
		}
	}
}
