package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/providertest"
)

// BreaksReused breaks a connection that carries its second request.
func BreaksReused(x *providertest.Exchange) {
	if x.Entry.OnConnection > 1 {
		x.Break(false)
	}
}

// NothingIsSentAgain sends twice over one connection, to a server that answers the first request well and then BreaksReused: the
// second is unknown, and is not made again on a connection of its own, which net/http would do by itself.
func NothingIsSentAgain(t *testing.T, p providers.Provider, server *providertest.Server) {
	t.Helper()
	out := p.Send(t.Context(), Request(), &Recorder{})
	require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
	out = p.Send(t.Context(), Request(), &Recorder{})
	require.Equal(t, providers.Unknown, out.Kind, "%+v", out.Failure)
	require.Equal(t, providers.CodeConnectionLost, out.Failure.Code)
	require.Len(t, server.Log(), 2)
	require.Equal(t, 2, server.Log()[1].OnConnection, "the connection was used again")
}
