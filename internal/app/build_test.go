package app

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/config"
)

func TestEveryKindHasAnAdapter(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, config.Kinds(), slices.Collect(maps.Keys(factories())))
}
