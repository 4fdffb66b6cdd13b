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
	sender := always(good)
	registry, err := providers.NewRegistry(
		[]providers.Config{{Name: "a", Kind: "fake", Models: []providers.Model{{Name: "vendor/b"}, {Name: "b"}}}},
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
		s := recorded(t, nil)
		d, err := contracts.NewDigests(registry, []contracts.Suite{s})
		require.NoError(t, err)
		got, ok := d.ConfigDigest("a/vendor/b")
		require.True(t, ok)
		require.Equal(t, digest, got)
		for _, target := range []string{"a/b", "a/vendor/b"} {
			cases, ok := d.CasesDigest("echo", target)
			require.True(t, ok)
			want, err := s.CasesDigest(target)
			require.NoError(t, err)
			require.Equal(t, want, cases)
			res, _, err := contracts.NewRunner(contracts.Deps{Targets: contracts.FromRegistry(registry)}).Run(t.Context(), s, target, contracts.Options{})
			require.NoError(t, err)
			require.Equal(t, cases, res.Basis.CasesDigest)
			require.Equal(t, s.Task.Digest, res.Basis.TaskVersion)
		}
		_, ok = d.CasesDigest("other", "a/b")
		require.False(t, ok)
		_, ok = d.CasesDigest("echo", "a/other")
		require.False(t, ok)
	})
}
