package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// speak sends a beginning of a request and returns the answer to it.
func speak(t *testing.T, addr, text string) (*http.Response, net.Conn) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err, "an answer, although the body does not end")
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp, conn
}

const halfBody = "POST /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n%sContent-Length: 1000\r\n\r\n{"

func TestBodiesThatDoNotEndAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	cfg := defaults(t)
	cfg.Limits.BodyTimeout = time.Second
	g := serve(t, cfg)
	for name, c := range map[string]struct {
		header, code string
		status       int
	}{
		"ReadByTheEndpoint": {"", "BODY_TIMEOUT", http.StatusRequestTimeout},
		"ReadByNobody":      {"Authorization: nonsense\r\n", "UNAUTHENTICATED", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, conn := speak(t, g.addr, fmt.Sprintf(halfBody, c.header))
			require.Equal(t, c.status, resp.StatusCode)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Contains(t, string(body), `"`+c.code+`"`)
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, "the connection is closed")
		})
	}
}

func TestStreamsAfterABodyGoOnWithoutADeadline(t *testing.T) {
	t.Parallel()
	const within = 50 * time.Millisecond
	lost := make(chan bool, 1)
	server := httptest.NewServer(boundBodies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			lost <- true
			return
		}
		// The server takes a deadline that passes on an idle connection for the client's leaving.
		select {
		case <-r.Context().Done():
			lost <- true
		case <-time.After(5 * within):
			lost <- false
		}
	}), within))
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
	require.NoError(t, err)
	req.Body, req.ContentLength = io.NopCloser(io.LimitReader(zeroes{}, 1000)), 1000
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.False(t, <-lost)
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { return len(p), nil }
