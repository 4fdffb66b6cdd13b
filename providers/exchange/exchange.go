// Package exchange performs one HTTP request to a provider and says how it ended: the shared core of all providers that
// speak HTTP. It keeps the time-outs, follows how far the request got, and classifies what can go wrong below the
// provider's own format.
//
// One exchange is one request on the wire. Redirects are not followed, nothing is retried, and only HTTP/1.1 is spoken,
// so that a connection belongs to one attempt at a time and its loss concerns that attempt alone.
package exchange

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/docket-gateway/docket/providers"
)

// Bounds of what is read. An answer beyond MaxAnswer is Failed with CodeMalformedAnswer, although its end was not seen:
// no task's output is that large, so whatever else it holds can never be used. Of an error body the first MaxErrorBody
// bytes are looked at.
const (
	MaxAnswer    = 32 << 20
	MaxErrorBody = 64 << 10
)

// Options are a client's settings. Time-outs must be positive; a zero Linger does not wait.
type Options struct {
	AckTimeout   time.Duration
	IdleTimeout  time.Duration
	TotalTimeout time.Duration
	Linger       time.Duration

	// ReuseConnections keeps connections open between attempts. Off by default: a server that closes an idle
	// connection just when the next request is written leaves that attempt UNKNOWN, and somebody has to settle it. That
	// costs more than a handshake per attempt.
	ReuseConnections bool

	// ProxyFromEnvironment follows HTTPS_PROXY and NO_PROXY. Base URLs are https or loopback, so a proxy only ever
	// tunnels, sees nothing but the host's name, and fails before the request is sent.
	ProxyFromEnvironment bool

	DialContext func(ctx context.Context, network, address string) (net.Conn, error) // nil: net.Dialer
	TLS         *tls.Config                                                          // nil: the system's roots
}

// For returns the options with the settings of a provider's configuration.
func (o Options) For(cfg providers.Config) Options {
	o.AckTimeout, o.IdleTimeout = cfg.AckTimeout, cfg.IdleTimeout
	o.TotalTimeout, o.Linger = cfg.TotalTimeout, cfg.Linger
	o.ProxyFromEnvironment = cfg.ProxyFromEnvironment
	return o
}

// Client performs exchanges with one provider. It is safe for concurrent use.
type Client struct {
	opts Options
	http *http.Client
}

// New returns a client.
func New(opts Options) *Client {
	dial := opts.DialContext
	if dial == nil {
		dial = (&net.Dialer{}).DialContext // bounded by the ack time-out through the context
	}
	tlsConfig := opts.TLS.Clone()
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if tlsConfig.ClientSessionCache == nil {
		tlsConfig.ClientSessionCache = tls.NewLRUClientSessionCache(0) // makes the handshake per attempt a short one
	}
	var proxy func(*http.Request) (*url.URL, error)
	if opts.ProxyFromEnvironment {
		proxy = http.ProxyFromEnvironment
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &Client{opts: opts, http: &http.Client{
		Transport: &http.Transport{
			Proxy:             proxy,
			TLSClientConfig:   tlsConfig,
			Protocols:         protocols,
			DisableKeepAlives: !opts.ReuseConnections,
			IdleConnTimeout:   3 * time.Second, // below the shortest keep-alive of common servers, which is 5 s
			// Providers' answers are read byte for byte and counted as they come.
			DisableCompression:     true,
			MaxResponseHeaderBytes: 256 << 10,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := dial(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &conn{Conn: c}, nil
			},
		},
		CheckRedirect: notFollowed,
	}}
}

func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call is one request and how its answer is read. Either Send makes the request, or URL, Header and Body are.
type Call struct {
	URL    string
	Header http.Header
	Body   []byte // sent with POST

	// Send makes the request through an SDK's client that was given c and nothing else to send with. c lets exactly one
	// request through, whatever the SDK thinks of retrying, and hands the SDK the answer's head without its body: the body is for
	// Read and ReadError, so that nothing of it is swallowed, repaired or read without bound. What the SDK makes of the empty body, and
	// Send's error, count only if nothing was sent. Send runs in the goroutine of Read.
	Send func(ctx context.Context, c *http.Client) error

	// Read reads the answer of a 2xx status. It returns the outcome as far as the format can say, or the error that
	// Body returned, with what it knows of usage and request id in the outcome. It runs in a goroutine of its own.
	Read func(Answer) (providers.Outcome, error)
	// ReadError says whether the body of another status is the provider's own error, and what it says.
	ReadError func(body []byte) (ErrorBody, bool)

	// RequestIDHeader is looked at first for the provider's name for the request: boxes in the middle have names of their own.
	RequestIDHeader string

	// HandleInBody: the acknowledgement is not the headers of a 2xx answer, but Read's call of Answer.Acknowledge.
	HandleInBody bool
}

// Answer is a provider's answer with a 2xx status. Body is bounded.
type Answer struct {
	RequestID string
	Header    http.Header
	Body      io.Reader

	// Acknowledge tells the handle that stands in the body. It does nothing unless Call.HandleInBody is set, and counts once.
	Acknowledge func(handle string)
}

// roundTrip is the exchange's goroutine: request, answer, classification of all that is not a time-out of ours. It
// reports through p and ends soon after ctx does.
func (c *Client) roundTrip(ctx context.Context, call Call, p *progress) providers.Outcome {
	ctx = httptrace.WithClientTrace(ctx, p.track.trace())
	send := call.Send
	if send == nil {
		send = call.post
	}
	one := &single{http: c.http, ctx: ctx}
	defer one.close()
	err := send(ctx, &http.Client{Transport: one, CheckRedirect: notFollowed})
	if !one.used && ctx.Err() == nil {
		return failed(providers.CodeNotSent, "the request could not be built")
	}
	resp, sendErr := one.resp, one.err
	if resp == nil && ctx.Err() != nil {
		// Our own cancelling broke it: that says nothing about the provider, not even if a write failed by it.
		return unknown(providers.CodeAborted, "ended by us")
	}
	if resp == nil {
		if sendErr == nil {
			sendErr = err
		}
		return p.track.classify(sendErr)
	}
	id := requestID(resp.Header, call.RequestIDHeader)

	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		p.rejected()
		// What came is judged, even if the rest did not: most statuses speak for themselves.
		body, readErr := io.ReadAll(io.LimitReader(&reader{r: resp.Body, p: p}, MaxErrorBody))
		out := classifyStatus(resp, body, readErr == nil, call.ReadError)
		out.ProviderRequestID = id
		return out
	}

	acknowledge := func(string) {}
	if call.HandleInBody {
		told := false
		acknowledge = func(handle string) {
			if !told {
				told = true
				p.acknowledge(providers.Acknowledgement{ProviderRequestID: id, Handle: handle})
			}
		}
	} else {
		p.acknowledge(providers.Acknowledgement{ProviderRequestID: id})
	}
	out, err := call.Read(Answer{RequestID: id, Header: resp.Header, Acknowledge: acknowledge,
		Body: &reader{r: resp.Body, p: p, left: MaxAnswer, bounded: true}})
	if err != nil {
		out.Kind, out.Failure = interrupted(err)
		out.Output = nil
	}
	if id != "" {
		out.ProviderRequestID = id
	}
	return out
}

// requestID returns the provider's name for the request, for its support and our logs.
func requestID(h http.Header, first string) string {
	for _, name := range []string{first, "X-Request-Id", "Request-Id"} {
		if id := h.Get(name); id != "" && len(id) <= 255 {
			return id
		}
	}
	return ""
}
