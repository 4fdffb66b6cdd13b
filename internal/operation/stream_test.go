package operation

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFirstErrorOfAStreamIsToldOnce(t *testing.T) {
	t.Parallel()
	FailStream(t.Context(), errors.New("outside of an operation: ignored"))
	s := &streamError{}
	ctx := context.WithValue(t.Context(), streamKey{}, s)
	FailStream(ctx, errors.New("first"))
	FailStream(ctx, errors.New("second"))
	require.EqualError(t, s.take(), "first")
	require.NoError(t, s.take())
}
