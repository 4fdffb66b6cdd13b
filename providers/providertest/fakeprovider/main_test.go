package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunsOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(t.Context(), "0.0.0.0:0"), "not a loopback address")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, run(ctx, "127.0.0.1:0"))
}
