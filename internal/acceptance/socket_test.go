package acceptance

import (
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// requireSocketRefuses sends the request over a socket and wants it closed as malformed.
func requireSocketRefuses(t *testing.T, c *client, request []byte, name string) {
	t.Helper()
	conn, err := c.dial(t.Context())
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	frame := append([]byte(`{"id": "1", "type": "subscribe", "payload": `), request...)
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, append(frame, '}')))
	m, err := read(t.Context(), conn)
	if err != nil {
		require.Contains(t, []websocket.StatusCode{4400, websocket.StatusInvalidFramePayloadData}, websocket.CloseStatus(err), "%s: %v", name, err)
		return
	}
	require.Equal(t, "error", m.end, name)
	require.Equal(t, []string{"INVALID_JSON"}, m.codes(), name)
}
