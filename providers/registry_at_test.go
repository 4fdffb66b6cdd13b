package providers_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
)

// seen is a registry whose factory keeps the configurations that it was given.
func seen(t *testing.T, configs ...providers.Config) (*providers.Registry, *[]providers.Config) {
	t.Helper()
	var all []providers.Config
	r, err := providers.NewRegistry(configs, map[string]providers.Factory{"stub": func(c providers.Config) (providers.Provider, error) {
		all = append(all, c)
		if c.BaseURL == "https://refused.example.com" {
			return nil, errors.New("refused")
		}
		return stub{"1"}, nil
	}})
	require.NoError(t, err)
	return r, &all
}

func TestAtBuildsTheSameTargetWithAnotherAddress(t *testing.T) {
	t.Parallel()
	r, built := seen(t, valid())
	before, ok := r.Lookup("openrouter/small")
	require.True(t, ok)
	got, err := r.At("openrouter/small", "http://127.0.0.1:1/v1")
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:1/v1", got.Config.BaseURL)
	require.Empty(t, got.Config.APIKey)
	got.Config.BaseURL = before.Config.BaseURL
	require.Equal(t, before, got, "nothing else is another")

	require.Len(t, *built, 2)
	first, second := (*built)[0], (*built)[1]
	require.Equal(t, "sk-1", second.APIKey, "the adapter needs it")
	second.BaseURL = first.BaseURL
	require.Equal(t, first, second)
	after, _ := r.Lookup("openrouter/small")
	require.Equal(t, before, after, "the registry does not change")
}

func TestWithIsNotShownTheKeyAndCannotMakeItAnotherProvider(t *testing.T) {
	t.Parallel()
	r, built := seen(t, valid())
	got, err := r.With("openrouter/meta/llama", func(c *providers.Config) {
		require.Empty(t, c.APIKey)
		c.Name, c.Kind, c.APIKey, c.Models, c.AckTimeout = "x", "other", "stolen", nil, time.Second
	})
	require.NoError(t, err)
	require.Equal(t, "openrouter/meta/llama", got.ID)
	require.Equal(t, time.Second, got.Config.AckTimeout)
	require.Equal(t, "sk-1", (*built)[1].APIKey)
	require.Equal(t, "stub", (*built)[1].Kind)
}

func TestAtRefuses(t *testing.T) {
	t.Parallel()
	r, _ := seen(t, valid())
	_, err := r.At("nobody/there", "http://127.0.0.1:1")
	require.ErrorContains(t, err, "nobody/there is not configured")
	_, err = r.At("openrouter/small", "http://example.com")
	require.ErrorContains(t, err, "openrouter/small.base_url: must be https, except on loopback")
	_, err = r.At("openrouter/small", "https://refused.example.com")
	require.ErrorContains(t, err, "refused")
}

// faulty tells how its provider fails; the keeper of a key stands before it.
type faulty struct{ stub }

func (faulty) WireFaults(model string) providers.WireFaults {
	return providers.WireFaults{Begun: providers.WireStream(model)}
}

func TestWireFaultsAreSeenThroughTheKeeperOfAKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "sk-long-enough-to-be-kept"} {
		c := valid()
		c.APIKey = key
		r, err := providers.NewRegistry([]providers.Config{c}, map[string]providers.Factory{"stub": func(providers.Config) (providers.Provider, error) {
			return faulty{}, nil
		}})
		require.NoError(t, err)
		target, _ := r.Lookup("openrouter/small")
		f, ok := providers.WireFaultsOf(target)
		require.True(t, ok)
		require.Equal(t, "small", f.Begun.Body)
	}
	_, ok := providers.WireFaultsOf(providers.Target{Sender: stub{}})
	require.False(t, ok)
	_, ok = providers.WireFaultsOf(providers.Target{})
	require.False(t, ok)
}
