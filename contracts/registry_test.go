package contracts_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/providers"
)

var _ gate.Current = contracts.Digests{}

func TestRegistry(t *testing.T) {
	t.Parallel()
	sender := always(`{"echo": "x"}`)
	registry, err := providers.NewRegistry(
		[]providers.Config{{Name: "a", Kind: "fake", Models: []providers.Model{{Name: "vendor/b"}}}},
		map[string]providers.Factory{"fake": func(providers.Config) (providers.Provider, error) { return sender, nil }},
	)
	require.NoError(t, err)
	digest, ok := registry.ConfigDigest("a/vendor/b")
	require.True(t, ok)

	t.Run("FindsConfiguredTargets", func(t *testing.T) {
		t.Parallel()
		ep, ok := contracts.FromRegistry(registry).Endpoint("a/vendor/b")
		require.True(t, ok)
		require.Equal(t, digest, ep.ConfigDigest)
		require.Equal(t, "vendor/b", ep.Target.Model.Name)
		require.Same(t, sender, ep.Target.Sender)
		_, ok = contracts.FromRegistry(registry).Endpoint("a/other")
		require.False(t, ok)
	})

	t.Run("GivesTheGateTheSameDigestsAsTheRunner", func(t *testing.T) {
		t.Parallel()
		s := suite(t, nil)
		d := contracts.NewDigests(registry, []contracts.Suite{s})
		got, ok := d.ConfigDigest("a/vendor/b")
		require.True(t, ok)
		require.Equal(t, digest, got)
		cases, ok := d.CasesDigest("echo")
		require.True(t, ok)
		require.Equal(t, s.CasesDigest, cases)
		_, ok = d.CasesDigest("other")
		require.False(t, ok)
	})
}
