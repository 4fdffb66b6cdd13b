package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestContracts(t *testing.T) {
	t.Parallel()
	cfg, err := Load(write(t, "contracts: {trusted_keys: [ci.pub, /etc/docket/other.pub], recheck: route, before: 12h, max_cost: 0.50}\n"), nil)
	require.NoError(t, err)
	require.Equal(t, Contracts{TrustedKeys: []string{"ci.pub", "/etc/docket/other.pub"}, Recheck: RecheckRoute, Before: 12 * time.Hour, MaxCost: "0.50"}, cfg.Contracts)

	for text, problem := range map[string]string{
		"trusted_keys: [a, a]": "contracts.trusted_keys[1]: is named twice",
		`trusted_keys: [""]`:   "contracts.trusted_keys[0]: must name a file",
		"trusted_keys: a":      "contracts.trusted_keys: must be a list",
		"recheck: always":      `contracts.recheck: "always" is not one of off, fallbacks, route`,
		"before: 59m":          "contracts.before: 59m0s is not between 1h0m0s and 720h0m0s",
		"before: 24":           "contracts.before: ",
		"max_cost: -1":         "contracts.max_cost: ",
		"max_cost: 1e3":        "contracts.max_cost: ",
		"trusted_key: [a]":     "contracts.trusted_key: unknown key",
	} {
		_, err := Load(write(t, "contracts: {"+text+"}\n"), nil)
		require.ErrorContains(t, err, problem, text)
	}
}
