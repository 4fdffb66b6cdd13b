package graph

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestComplexityDoesNotOverflow(t *testing.T) {
	t.Parallel()
	huge, none := math.MaxInt, -5
	c := 1
	for range 40 {
		c = times(c, &huge, nil, 1)
		require.Positive(t, c)
	}
	require.Equal(t, 4, times(3, &none, nil, 100), "what the resolver refuses")
	require.Equal(t, 7, times(3, nil, nil, 2))
}
