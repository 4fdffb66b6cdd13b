package apikeys

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pattern is what docs/authentication.md gives to scanners.
var pattern = regexp.MustCompile(`^dk_[0-9a-hjkmnp-tv-z]{26}_[0-9a-hjkmnp-tv-z]{59}$`)

func TestKeysAreRecognised(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		id, key := generate()
		require.Regexp(t, pattern, key)
		got, ok := parse(key)
		require.True(t, ok)
		require.Equal(t, id, got)
		require.Equal(t, "dk_"+strings.TrimPrefix(id, "key_")+"_", key[:30], "the id is the key's public half")
		require.False(t, seen[key[30:]], "a secret comes twice")
		seen[key[30:]] = true
		require.Len(t, hash(key), 32)
	}
}

func TestWhatIsMistypedIsNoKey(t *testing.T) {
	t.Parallel()
	_, key := generate()
	for i := range key {
		other := byte('0')
		if key[i] == other {
			other = '1'
		}
		_, ok := parse(key[:i] + string(other) + key[i+1:])
		require.False(t, ok, "character %d", i)
	}
	for _, text := range []string{"", "dk_", key[:len(key)-1], key + "0", " " + key, strings.ToUpper(key), strings.Repeat("x", len(key))} {
		_, ok := parse(text)
		require.False(t, ok, "%q", text)
	}
}
