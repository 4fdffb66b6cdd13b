package providertest

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Dial is a dialer's function.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// StartPiped runs a server whose connections are in memory, for tests in a synctest bubble, where time stands still
// while anything moves. It returns a base URL and the dialer that reaches the server.
func StartPiped(t TB) (*Server, string, Dial) {
	t.Helper()
	return StartPipedOf(t, ChatCompletions())
}

// StartPipedOf is StartPiped with another protocol.
func StartPipedOf(t TB, p Protocol) (*Server, string, Dial) {
	t.Helper()
	s := NewServerOf(p)
	h := &http.Server{} //nolint:gosec // in memory
	s.Configure(h)
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Serve(l)
	}()
	t.Cleanup(func() {
		s.Close()
		_ = h.Close()
		<-done
	})
	return s, "http://127.0.0.1:1/v1", l.dial
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
	case <-ctx.Done():
	}
	_ = client.Close()
	_ = server.Close()
	return nil, net.ErrClosed
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
