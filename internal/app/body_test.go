package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
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

// A stream begins when its request's body is over, and outlives that body's time.
func TestStreamsGoOnBeyondTheTimeOfTheirBody(t *testing.T) {
	t.Parallel()
	cfg := defaults(t)
	cfg.Limits.BodyTimeout = time.Second
	cfg.Providers[0].AckTimeout, cfg.Providers[0].IdleTimeout = 2*time.Second, 2*time.Second
	g := serve(t, cfg)
	id := job(t, g.addr, "a", "demo/fax")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.addr+"/graphql",
		strings.NewReader(`{"query":"subscription { jobEvents(jobId: \"`+id+`\") { to } }"}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	// demo/fax falls silent for longer than the body had.
	for lines.Scan() && !strings.Contains(lines.Text(), `"UNKNOWN"`) {
	}
	require.NoError(t, lines.Err())
	require.Contains(t, lines.Text(), `"UNKNOWN"`)
}
