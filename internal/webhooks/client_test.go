package webhooks

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"code.dny.dev/ssrf"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/docket-gateway/docket/ent/job"
)

// service makes deliveries without a queue.
func service(t *testing.T, private bool, in seams) *Service {
	t.Helper()
	s, err := newService(Options{Secrets: []string{oldSecret}, AllowPrivate: private}, in)
	require.NoError(t, err)
	return s
}

func delivery(url string) entryArgs {
	return entryArgs{URL: url, JobID: "job_1", IdempotencyKey: "k", State: string(job.StateFAILED), Version: 2, Event: 5, At: time.Unix(1, 0)}
}

// inside is a server of the inner network that counts who connects. Its certificate is good for example.com.
type inside struct {
	*httptest.Server

	connections atomic.Int32
	roots       *x509.CertPool
	port        string
}

func newInside(t *testing.T) *inside {
	t.Helper()
	in := &inside{roots: x509.NewCertPool()}
	in.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	in.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			in.connections.Add(1)
		}
	}
	in.StartTLS()
	t.Cleanup(in.Close)
	in.roots.AddCert(in.Certificate())
	_, port, err := net.SplitHostPort(in.Listener.Addr().String())
	require.NoError(t, err)
	in.port = port
	return in
}

// The names do not matter to the guard: it sees what they resolve to, when the connection is made.
func TestConnectsToNoInnerAddressWhateverTheURLSays(t *testing.T) {
	t.Parallel()
	in := newInside(t)
	resolver := resolve(t, map[string][]string{"example.com.": {"127.0.0.1"}, "mixed.example.": {"10.0.0.1", "127.0.0.1"}, "ten.example.": {"10.0.0.1"}})
	guarded := newHTTPClient(false, seams{resolver: resolver, roots: in.roots})
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::]", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1",
		"169.254.169.254", "[fd00::1]", "[64:ff9b::7f00:1]", "example.com", "mixed.example", "ten.example",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+host+":"+in.port+"/", http.NoBody)
		require.NoError(t, err)
		res, err := guarded.Do(req)
		if res != nil {
			require.NoError(t, res.Body.Close())
		}
		require.ErrorIs(t, err, ssrf.ErrProhibitedIP, host)
	}
	require.Zero(t, in.connections.Load())
	require.ErrorIs(t, service(t, false, seams{resolver: resolver, roots: in.roots}).try(t.Context(), delivery("https://example.com:"+in.port)), ssrf.ErrProhibitedIP)
	require.Zero(t, in.connections.Load())

	// Without the guard it would have been reached.
	require.NoError(t, service(t, true, seams{resolver: resolver, roots: in.roots}).try(t.Context(), delivery("https://example.com:"+in.port)))
	require.EqualValues(t, 1, in.connections.Load())
}

func TestChecksTheURLAgainBeforeEveryTry(t *testing.T) {
	t.Parallel()
	s := service(t, false, seams{})
	require.ErrorIs(t, s.try(t.Context(), delivery("http://hooks.example.com/")), errNoURL)
	require.ErrorIs(t, s.try(t.Context(), delivery("https://hooks.example.com:22/")), errPort)
	require.ErrorIs(t, s.try(t.Context(), delivery("https://127.0.0.1/")), errPrivate)
}

func TestFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303, 307, 308} {
		in := newInside(t)
		r := httptest.NewServer(http.RedirectHandler(in.URL, status))
		t.Cleanup(r.Close)
		err := service(t, true, seams{roots: in.roots}).try(t.Context(), delivery(r.URL))
		require.Equal(t, &statusError{status: status}, err)
		require.Zero(t, in.connections.Load())
	}
}

func TestUsesNoProxy(t *testing.T) {
	t.Parallel()
	transport, ok := newHTTPClient(false, seams{}).Transport.(*http.Transport)
	require.True(t, ok)
	require.Nil(t, transport.Proxy)
}

func TestTrustsNoUnknownCertificate(t *testing.T) {
	t.Parallel()
	in := newInside(t)
	var unknown x509.UnknownAuthorityError
	require.ErrorAs(t, service(t, true, seams{}).try(t.Context(), delivery(in.URL)), &unknown)
}

func TestEndsATryThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	defer close(end) // before the servers are closed
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		delivered bool
	}{
		"NoAnswer": {func(http.ResponseWriter, *http.Request) { <-end }, false},
		"SlowBody": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-end
		}, true},
		"EndlessBody": {func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}, true},
	} {
		r := httptest.NewServer(tc.handler)
		t.Cleanup(r.Close)
		s := service(t, true, seams{})
		require.Equal(t, requestTimeout, s.http.Timeout)
		s.http.Timeout = 200 * time.Millisecond
		err := s.try(t.Context(), delivery(r.URL))
		if tc.delivered {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.NotContains(t, err.Error(), r.URL)
		}
	}
}

// resolve returns a resolver that knows these names only.
func resolve(t *testing.T, names map[string][]string) *net.Resolver {
	t.Helper()
	server, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer, err := answerDNS(buf[:n], names); err == nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func answerDNS(query []byte, names map[string][]string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	m.Response, m.Additionals = true, nil
	q := m.Questions[0]
	found, ok := names[q.Name.String()]
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, ip := range found {
		if q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(ip).To4())},
			})
		}
	}
	return m.Pack()
}
