package providers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
)

func TestRegistryFindsAKey(t *testing.T) {
	t.Parallel()
	c := valid()
	c.APIKey = key
	r, _ := seen(t, c)
	id := r.Targets()[0].ID
	require.Equal(t, "a [redacted] b", r.Redact(id, "a "+key+" b"))
	require.True(t, r.HoldsKey(id, []byte(`{"a":"\u0073`+key[1:]+`"}`)))
	require.False(t, r.HoldsKey(id, []byte("nothing")))
	require.False(t, r.HoldsKey("nobody/there", []byte(key)))
	require.Equal(t, key, r.Redact("nobody/there", key))
}

func TestAStandInIsSentWhereNoKeyIsConfigured(t *testing.T) {
	t.Parallel()
	c := valid()
	c.APIKey = ""
	r, built := seen(t, c)
	got, err := r.With(r.Targets()[0].ID, func(c *providers.Config) { c.APIKey = "stand-in" })
	require.NoError(t, err)
	require.Equal(t, "stand-in", (*built)[1].APIKey)
	require.Empty(t, got.Config.APIKey)
}
