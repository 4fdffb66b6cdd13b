package exchange

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/docket-gateway/docket/providers"
)

// conn notes whether anything was handed to the kernel and whether a write failed. httptrace alone cannot say: its
// WroteRequest comes before the last buffer is flushed.
type conn struct {
	net.Conn
	began  atomic.Bool // a write was begun
	failed atomic.Bool // a write took less than it was given
}

func (c *conn) Write(p []byte) (int, error) {
	c.began.Store(true)
	n, err := c.Conn.Write(p)
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// track follows how far one request got.
type track struct {
	got      atomic.Bool          // a connection was assigned
	conn     atomic.Pointer[conn] // nil though got: not ours, so anything may have been written
	writeErr atomic.Bool
}

func (t *track) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if c := unwrap(info.Conn); c != nil {
				// Handshakes and earlier requests are behind us: from here on a write is this request's.
				c.began.Store(false)
				c.failed.Store(false)
				t.conn.Store(c)
			}
			t.got.Store(true)
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err != nil {
				t.writeErr.Store(true)
			}
		},
	}
}

func unwrap(c net.Conn) *conn {
	for {
		switch v := c.(type) {
		case *conn:
			return v
		case *tls.Conn:
			c = v.NetConn()
		default:
			return nil
		}
	}
}

// began says whether any of the request may have been handed to the kernel. After the exchange's goroutine ended the
// answer does not change any more.
func (t *track) began() bool {
	if !t.got.Load() {
		return false
	}
	c := t.conn.Load()
	return c == nil || c.began.Load()
}

// notFullyWritten says whether a write failed, so that the provider cannot have the whole request. net/http waits for its writer
// before it returns an error, so the answer is final by then.
func (t *track) notFullyWritten() bool {
	if t.writeErr.Load() {
		return true
	}
	c := t.conn.Load()
	return c != nil && c.failed.Load()
}

// classify says what an error means that came instead of an answer. Errors that our own cancelling caused are not for it.
func (t *track) classify(err error) providers.Outcome {
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &verification):
		return failed(providers.CodeTLS, "the provider's certificate could not be verified")
	case !t.got.Load():
		return retryable(providers.CodeUnreachable, "no connection to the provider: "+reason(err))
	case !t.began() || t.notFullyWritten():
		return retryable(providers.CodeNotSent, "the request was not fully written: "+reason(err))
	default:
		return unknown(providers.CodeConnectionLost, "the connection was lost after the request was written: "+reason(err))
	}
}
