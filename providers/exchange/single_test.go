package exchange_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

// sdk posts by the client that it is given, as often as it likes, as an SDK does that retries, and reads what it gets.
func sdk(url string, times int, got *[]string) func(context.Context, *http.Client) error {
	return func(ctx context.Context, c *http.Client) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // SDKs end a request's context when their call returns
		var last error
		for range times {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte("question")))
			if err != nil {
				return err
			}
			req.Header.Set("Idempotency-Key", "att_1")
			resp, err := c.Do(req)
			if err != nil {
				last = err
				*got = append(*got, "error")
				continue
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				return err
			}
			*got = append(*got, resp.Status+" "+string(body))
		}
		return last
	}
}

func TestAnSDKSendsOnceAndReadsNothing(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/busy":
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = w.Write(append([]byte("answer to "), body...))
	}))
	defer server.Close()
	for path, tc := range map[string]struct {
		status string
		check  func(t *testing.T, out providers.Outcome)
	}{
		"/ok": {"200 OK ", func(t *testing.T, out providers.Outcome) {
			require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
			require.Equal(t, "answer to question", string(out.Output))
		}},
		"/busy": {"429 Too Many Requests ", func(t *testing.T, out providers.Outcome) {
			requireFailure(t, out, providers.Failed, providers.CodeRateLimited, true)
			require.Equal(t, time.Second, out.Failure.RetryAfter)
		}},
		"/redirect": {"307 Temporary Redirect ", func(t *testing.T, out providers.Outcome) {
			requireFailure(t, out, providers.Failed, providers.CodeRedirected, false)
		}},
	} {
		requests.Store(0)
		var got []string
		c := call("", nil)
		c.Send = sdk(server.URL+path, 3, &got)
		out := client(t, options()).Do(t.Context(), c, &recorder{})
		tc.check(t, out)
		require.Equal(t, []string{tc.status, "error", "error"}, got)
		require.Equal(t, int32(1), requests.Load(), "one attempt is one request")
	}
}

func TestAnSDKThatSendsNothing(t *testing.T) {
	t.Parallel()
	c := call("", nil)
	c.Send = func(context.Context, *http.Client) error { return errors.New("no such model") }
	out := client(t, options()).Do(t.Context(), c, &recorder{})
	requireFailure(t, out, providers.Failed, providers.CodeNotSent, false)
	c.Send = func(context.Context, *http.Client) error { panic("oops") }
	out = client(t, options()).Do(t.Context(), c, &recorder{})
	requireFailure(t, out, providers.Failed, providers.CodeAdapter, false)
}

func TestAnSDKWithoutAConnection(t *testing.T) {
	t.Parallel()
	opts := options()
	opts.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") }
	var got []string
	c := call("", nil)
	c.Send = sdk("http://127.0.0.1:1/", 2, &got)
	requireFailure(t, client(t, opts).Do(t.Context(), c, &recorder{}), providers.Failed, providers.CodeUnreachable, true)
	require.Equal(t, []string{"error", "error"}, got)
}

// With the handle in the body, the body's word is the acknowledgement, and counts once.
func TestHandleInBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opts := options()
		opts.DialContext = pipe(func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Request-Id: r1\r\nContent-Length: 3\r\n\r\na")
			<-time.After(3 * time.Second)
			_, _ = io.WriteString(c, "bc")
		})
		c := call("http://127.0.0.1:1/", nil)
		c.HandleInBody = true
		c.Read = func(a exchange.Answer) (providers.Outcome, error) {
			b, err := io.ReadAll(a.Body)
			a.Acknowledge("h1")
			a.Acknowledge("h2")
			return providers.Outcome{Kind: providers.Completed, Output: b}, err
		}
		r := &handles{}
		start := time.Now()
		out := client(t, opts).Do(t.Context(), c, r)
		require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
		require.Equal(t, []providers.Acknowledgement{{ProviderRequestID: "r1", Handle: "h1"}}, r.acks)
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

type handles struct {
	recorder
	acks []providers.Acknowledgement
}

func (h *handles) Acknowledged(a providers.Acknowledgement) { h.acks = append(h.acks, a) }

// The proxy that the environment names is followed only when asked for. Not parallel: it must be the first of the process to look
// at the environment.
func TestProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.invalid:3128")
	for follow, want := range map[bool]string{false: "provider.invalid:80", true: "proxy.invalid:3128"} {
		opts := options()
		var dialled []string
		opts.ProxyFromEnvironment = follow
		opts.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			return nil, errors.New("no way")
		}
		out := client(t, opts).Do(t.Context(), call("http://provider.invalid/", []byte(strings.Repeat("x", 10))), &recorder{})
		requireFailure(t, out, providers.Failed, providers.CodeUnreachable, true)
		require.Equal(t, []string{want}, dialled)
	}
}
