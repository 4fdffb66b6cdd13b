package exchange

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
)

func TestTrackForgetsWhatWasWrittenBeforeItsRequest(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := &conn{Conn: ours}
	c.began.Store(true) // a handshake, or an earlier request
	var tr track
	require.False(t, tr.began())
	tr.trace().GotConn(httptrace.GotConnInfo{Conn: tls.Client(c, &tls.Config{MinVersion: tls.VersionTLS12}), Reused: true})
	require.False(t, tr.began())
	require.Equal(t, providers.CodeNotSent, tr.classify(errors.New("closed")).Failure.Code)
	c.began.Store(true)
	require.True(t, tr.began())
	require.Equal(t, providers.CodeConnectionLost, tr.classify(errors.New("closed")).Failure.Code)
}

// A connection that is not ours to watch may have carried anything.
func TestTrackExpectsTheWorstOfUnknownConnections(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	var tr track
	tr.trace().GotConn(httptrace.GotConnInfo{Conn: ours})
	require.True(t, tr.began())
	require.Equal(t, providers.Unknown, tr.classify(errors.New("closed")).Kind)
}
