package exchange_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder keeps what the reporter was told.
type recorder struct {
	mu   sync.Mutex
	said []string
}

func (r *recorder) note(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, s)
}
func (r *recorder) Acknowledged(providers.Acknowledgement) { r.note("acknowledged") }
func (r *recorder) Progress()                              {}
func (r *recorder) Unknown(f providers.Failure)            { r.note("unknown " + f.Code) }

func options() exchange.Options {
	return exchange.Options{AckTimeout: 10 * time.Second, IdleTimeout: 20 * time.Second, TotalTimeout: time.Minute, Linger: time.Minute}
}

// call posts a body and takes the whole answer for the output.
func call(url string, body []byte) exchange.Call {
	return exchange.Call{
		URL: url, Body: body, Header: http.Header{"Idempotency-Key": {"att_1"}},
		Read: func(a exchange.Answer) (providers.Outcome, error) {
			b, err := io.ReadAll(a.Body)
			return providers.Outcome{Kind: providers.Completed, Output: b}, err
		},
	}
}

func client(t *testing.T, opts exchange.Options) *exchange.Client {
	t.Helper()
	c := exchange.New(opts)
	t.Cleanup(c.Close)
	return c
}

func requireFailure(t *testing.T, out providers.Outcome, kind providers.OutcomeKind, code string, retryable bool) {
	t.Helper()
	require.Equal(t, kind, out.Kind, "%+v", out.Failure)
	require.Equal(t, code, out.Failure.Code, out.Failure.Message)
	require.Equal(t, retryable, out.Failure.Retryable)
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// cutConn fails writing after some bytes, as a kernel does whose peer is gone.
type cutConn struct {
	net.Conn
	left int
}

func (c *cutConn) Write(p []byte) (int, error) {
	if len(p) > c.left {
		n, _ := c.Conn.Write(p[:c.left])
		c.left -= n
		return n, syscall.EPIPE
	}
	c.left -= len(p)
	return c.Conn.Write(p)
}

// pipe dials connections in memory whose other ends are given to serve.
func pipe(serve func(net.Conn)) dial {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			serve(theirs)
		}()
		return ours, nil
	}
}

func swallow(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// holds keeps a connection open and reads n bytes of it.
func holds(n int64, until context.Context) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.CopyN(io.Discard, c, n)
		<-until.Done()
	}
}

// What goes wrong before the request is fully written, on a clock that jumps.
func TestNotSent(t *testing.T) {
	t.Parallel()
	failing := func(err error) func(context.Context) dial {
		return func(context.Context) dial {
			return func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: err}
			}
		}
	}
	cut := func(n int) func(context.Context) dial {
		return func(context.Context) dial {
			d := pipe(swallow)
			return func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := d(ctx, network, address)
				return &cutConn{Conn: c, left: n}, err
			}
		}
	}
	hangingDial := func(context.Context) dial {
		return func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	big := bytes.Repeat([]byte("a"), 1<<20)
	for name, tc := range map[string]struct {
		url  string
		body []byte
		dial func(context.Context) dial
		stop time.Duration // when our own context ends, 0 is not

		kind      providers.OutcomeKind
		code      string
		retryable bool
		said      []string
		end       time.Duration
	}{
		"Refused":       {dial: failing(syscall.ECONNREFUSED), kind: providers.Failed, code: providers.CodeUnreachable, retryable: true},
		"NoSuchHost":    {dial: failing(&net.DNSError{Err: "no such host", Name: "secret.internal"}), kind: providers.Failed, code: providers.CodeUnreachable, retryable: true},
		"DialHangs":     {dial: hangingDial, kind: providers.Failed, code: providers.CodeUnreachable, retryable: true, end: 10 * time.Second},
		"DialIsStopped": {dial: hangingDial, stop: time.Second, kind: providers.Failed, code: providers.CodeAborted, retryable: true, end: time.Second},
		"HandshakeHangs": {url: "https://127.0.0.1:1", dial: func(ctx context.Context) dial { return pipe(holds(1<<30, ctx)) },
			kind: providers.Failed, code: providers.CodeUnreachable, retryable: true, end: 10 * time.Second},
		"HandshakeIsCut": {url: "https://127.0.0.1:1", dial: func(context.Context) dial { return pipe(func(net.Conn) {}) },
			kind: providers.Failed, code: providers.CodeUnreachable, retryable: true},
		"FirstWriteFails":      {dial: cut(0), kind: providers.Failed, code: providers.CodeNotSent, retryable: true},
		"SmallRequestIsCut":    {dial: cut(50), body: []byte("hello"), kind: providers.Failed, code: providers.CodeNotSent, retryable: true},
		"BodyIsCut":            {dial: cut(300_000), body: big, kind: providers.Failed, code: providers.CodeNotSent, retryable: true},
		"AlmostAllIsNotEnough": {dial: cut(1 << 20), body: big, kind: providers.Failed, code: providers.CodeNotSent, retryable: true},
		// From the first byte on a time-out or our own end is unknown, even if it is what breaks the writing.
		"WritingStalls": {body: big, dial: func(ctx context.Context) dial { return pipe(holds(1000, ctx)) },
			kind: providers.Unknown, code: providers.CodeAckTimeout, said: []string{"unknown ACK_TIMEOUT"}, end: 70 * time.Second},
		"FirstWriteStalls": {body: big, dial: func(ctx context.Context) dial { return pipe(holds(0, ctx)) },
			kind: providers.Unknown, code: providers.CodeAckTimeout, said: []string{"unknown ACK_TIMEOUT"}, end: 70 * time.Second},
		"WritingIsStopped": {body: big, dial: func(ctx context.Context) dial { return pipe(holds(1000, ctx)) }, stop: time.Second,
			kind: providers.Unknown, code: providers.CodeAborted, end: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				over, end := context.WithCancel(t.Context())
				defer end()
				opts := options()
				opts.DialContext = tc.dial(over)
				ctx := t.Context()
				if tc.stop > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.stop)
					defer cancel()
				}
				url := tc.url
				if url == "" {
					url = "http://127.0.0.1:1/"
				}
				start, r := time.Now(), &recorder{}
				out := client(t, opts).Do(ctx, call(url, tc.body), r)
				requireFailure(t, out, tc.kind, tc.code, tc.retryable)
				require.Equal(t, tc.said, r.said)
				require.Equal(t, tc.end, time.Since(start))
				require.NotContains(t, out.Failure.Message, "secret")
			})
		})
	}
}

func TestAbortedBeforeTheStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	opts := options()
	opts.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("dialled")
	}
	requireFailure(t, client(t, opts).Do(ctx, call("http://127.0.0.1:1/", nil), &recorder{}), providers.Failed, providers.CodeAborted, true)
}

func TestCertificateVerification(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { served.Add(1) }))
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	defer s.Close()
	requireFailure(t, client(t, options()).Do(t.Context(), call(s.URL, nil), &recorder{}), providers.Failed, providers.CodeTLS, false)
	require.Zero(t, served.Load())

	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	opts := options()
	opts.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	out := client(t, opts).Do(t.Context(), call(s.URL, []byte("hello")), &recorder{})
	require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
}

func TestPlainServerBehindHTTPS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = quiet()
	s.Start()
	defer s.Close()
	out := client(t, options()).Do(t.Context(), call(strings.Replace(s.URL, "http:", "https:", 1), nil), &recorder{})
	requireFailure(t, out, providers.Failed, providers.CodeUnreachable, true)
}

// Lost behind TLS the request counts as written only for what was written after the handshake.
func TestLostBehindTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	opts := options()
	opts.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
	out := client(t, opts).Do(t.Context(), call(s.URL, []byte("hello")), &recorder{})
	requireFailure(t, out, providers.Unknown, providers.CodeConnectionLost, false)

	opts.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &cutConn{Conn: c, left: 4000}, err // enough for the handshake
	}
	out = client(t, opts).Do(t.Context(), call(s.URL, bytes.Repeat([]byte("a"), 1<<20)), &recorder{})
	requireFailure(t, out, providers.Failed, providers.CodeNotSent, true)
}

// countsRequests answers the first request of each connection and closes the connection on the next one, after
// reading it. net/http re-sends a POST in that case if it carries an idempotency key and can be rewound.
func countsRequests(t *testing.T) (url string, requests, connections *atomic.Int64) {
	t.Helper()
	requests, connections = new(atomic.Int64), new(atomic.Int64)
	type perConnection struct{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Context().Value(perConnection{}).(*atomic.Int64).Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "ok")
	}))
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		connections.Add(1)
		return context.WithValue(ctx, perConnection{}, new(atomic.Int64))
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, requests, connections
}

func TestNeverSendsAgainOnABrokenReusedConnection(t *testing.T) {
	t.Parallel()
	url, requests, connections := countsRequests(t)
	opts := options()
	opts.ReuseConnections = true
	c := client(t, opts)
	out := c.Do(t.Context(), call(url, []byte("one")), &recorder{})
	require.Equal(t, providers.Completed, out.Kind)
	out = c.Do(t.Context(), call(url, []byte("two")), &recorder{})
	requireFailure(t, out, providers.Unknown, providers.CodeConnectionLost, false)
	require.EqualValues(t, 2, requests.Load(), "one attempt is one request")
	require.EqualValues(t, 1, connections.Load(), "the connection was re-used, or this test shows nothing")
}

func TestTakesAConnectionPerAttemptByDefault(t *testing.T) {
	t.Parallel()
	url, requests, connections := countsRequests(t)
	c := client(t, options())
	for range 3 {
		require.Equal(t, providers.Completed, c.Do(t.Context(), call(url, []byte("x")), &recorder{}).Kind)
	}
	require.EqualValues(t, 3, requests.Load())
	require.EqualValues(t, 3, connections.Load())
}

func TestBoundsTheAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size int
		kind providers.OutcomeKind
	}{"JustBelow": {exchange.MaxAnswer - 1, providers.Completed}, "Above": {exchange.MaxAnswer + 1, providers.Failed}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(bytes.Repeat([]byte("a"), tc.size))
			}))
			defer s.Close()
			out := client(t, options()).Do(t.Context(), call(s.URL, nil), &recorder{})
			require.Equal(t, tc.kind, out.Kind)
			if tc.kind == providers.Failed {
				requireFailure(t, out, providers.Failed, providers.CodeMalformedAnswer, false)
				require.Nil(t, out.Output)
			}
		})
	}
}

func TestAPanicOfTheAdapterIsUnknown(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer s.Close()
	c := call(s.URL, nil)
	c.Read = func(exchange.Answer) (providers.Outcome, error) { panic("no such field") }
	out := client(t, options()).Do(t.Context(), c, &recorder{})
	requireFailure(t, out, providers.Unknown, providers.CodeAdapter, false)
}

func TestAnswerBeforeTheBodyWasReadCounts(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}))
	defer s.Close()
	// What the server leaves unread is small enough for the socket buffers, so its answer is not overtaken by a reset.
	out := client(t, options()).Do(t.Context(), call(s.URL, bytes.Repeat([]byte("a"), 64<<10)), &recorder{})
	requireFailure(t, out, providers.Failed, providers.CodeBadRequest, false)
}
