package transport

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

type over struct{ error }

func (over) Code() string   { return "OVER" }
func (over) CloseCode() int { return 4403 }

// An operation that ends because its socket does has neither completed nor failed.
func TestNothingIsSentOnceASocketHasEnded(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancelCause(t.Context())
	end(over{errors.New("over")})
	o := &operation{ours: "1", client: "a", q: newQueue(Options{}.withDefaults())}
	s := &socket{byClient: map[string]*operation{"a": o}, byOurs: map[string]*operation{"1": o}} // without a connection to write to
	s.bind(ctx)
	require.NotPanics(t, func() {
		for _, kind := range []string{"next", "complete"} {
			require.NoError(t, s.WriteJSON(message{ID: "1", Type: kind}))
		}
	})
}

func TestAStreamThatTheServerEndsSaysWhyInAComment(t *testing.T) {
	t.Parallel()
	ends := make(chan context.CancelCauseFunc, 1)
	s := serve(t, operations{"s": silent}, Options{Bound: func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, end := context.WithCancelCause(ctx)
		ends <- end
		return ctx, func() { end(nil) }
	}})
	resp := s.get(t, "s")
	(<-ends)(over{errors.New("over")})
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, ":\n: OVER\n", string(body))
}
