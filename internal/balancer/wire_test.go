package balancer

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// wire lies between a balancer and one replica. It sees what goes over it, and can lose what the replica answers.
type wire struct {
	addr string

	mu       sync.Mutex
	listener net.Listener
	target   string
	lossy    bool
	calls    []*call
}

// call is one connection, which carries one request in both shipped configurations.
type call struct {
	head []byte // the beginning of what was sent
	sent int    // bytes that the replica's machine has taken
	lost int    // bytes of its answer that went nowhere
	over bool
}

func layWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{addr: freeAddress(t)}
	t.Cleanup(w.cut)
	return w
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// connect begins to listen for a replica.
func (w *wire) connect(t *testing.T, target string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", w.addr)
	require.NoError(t, err)
	w.mu.Lock()
	w.listener, w.target, w.lossy, w.calls = l, target, false, nil
	w.mu.Unlock()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(conn, target)
		}
	}()
}

// cut refuses connections, as the machine of a program that is gone does. What is under way goes on.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		_ = w.listener.Close()
	}
	w.listener = nil
}

func (w *wire) carry(conn net.Conn, target string) {
	defer func() { _ = conn.Close() }()
	replica, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", target)
	if err != nil {
		return
	}
	defer func() { _ = replica.Close() }()
	c := &call{}
	w.mu.Lock()
	w.calls = append(w.calls, c)
	w.mu.Unlock()
	go func() { // ends when conn is closed
		w.pump(replica, conn, func(p []byte) bool {
			if len(c.head) < 4096 {
				c.head = append(c.head, p...)
			}
			c.sent += len(p)
			return true
		})
		_ = replica.(*net.TCPConn).CloseWrite()
	}()
	w.pump(conn, replica, func(p []byte) bool {
		if w.lossy || c.lost > 0 {
			c.lost += len(p)
			return false
		}
		return true
	})
	w.mu.Lock()
	c.over = true
	w.mu.Unlock()
}

// pump copies what pass lets through, and tells it what was copied.
func (w *wire) pump(to io.Writer, from io.Reader, pass func(p []byte) bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		passes := n > 0 && pass(buffer[:n])
		w.mu.Unlock()
		if passes {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *wire) loseAnswers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lossy = true
}

// requests are those for GraphQL; checks of health are not counted.
func (w *wire) requests() (all []call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if _, path, _ := strings.Cut(string(c.head), " "); strings.HasPrefix(path, "/graphql") {
			all = append(all, *c)
		}
	}
	return all
}

func (w *wire) count() int { return len(w.requests()) }

// last is the newest request's head.
func (w *wire) last(t *testing.T) *http.Request {
	t.Helper()
	all := w.requests()
	require.NotEmpty(t, all)
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(all[len(all)-1].head)))
	require.NoError(t, err)
	return r
}

// under counts requests that are not over.
func (w *wire) under() (n int) {
	for _, c := range w.requests() {
		if !c.over {
			n++
		}
	}
	return n
}
