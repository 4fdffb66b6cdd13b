package cassette

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

// upstream gets whole answers from the recorded endpoint, within the time-outs of its configuration. It speaks HTTP as package
// exchange does: version 1.1, a connection for each request, nothing unpacked, nothing followed, nothing sent again.
type upstream struct {
	ack, idle, total time.Duration
	http             *http.Transport
}

func newUpstream(cfg providers.Config) *upstream {
	var proxy func(*http.Request) (*url.URL, error)
	if cfg.ProxyFromEnvironment {
		proxy = http.ProxyFromEnvironment
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &upstream{ack: cfg.AckTimeout, idle: cfg.IdleTimeout, total: cfg.TotalTimeout, http: &http.Transport{
		Proxy: proxy, Protocols: protocols, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 256 << 10,
	}}
}

func (u *upstream) close() { u.http.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper. The answer's body has been read, so that the recorder's time is that of the whole.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	after := func(d time.Duration, why string) *time.Timer {
		return time.AfterFunc(d, func() { cancel(errors.New(why)) })
	}
	total := after(u.total, "it did not end within total_timeout, "+u.total.String())
	defer total.Stop()
	ack := after(u.ack, "it was not acknowledged within ack_timeout, "+u.ack.String())
	defer ack.Stop()
	because := func(err error) error {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	r = r.Clone(ctx)
	r.Header.Del(stepHeader)
	if r.Body != nil {
		// The recorder keeps what is read, and an endpoint may answer before it has the whole.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, because(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.GetBody = nil // net/http cannot send it again by itself
	resp, err := u.http.RoundTrip(r)
	if err != nil {
		return nil, because(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if !ack.Stop() {
		return nil, because(context.Canceled)
	}
	if packed := resp.Header.Get("Content-Encoding"); packed != "" && packed != "identity" {
		return nil, fmt.Errorf("it is packed (%q), which nobody asked for, and cannot be searched for keys", packed)
	}
	idle := after(u.idle, "it was silent for idle_timeout, "+u.idle.String())
	defer idle.Stop()
	var body bytes.Buffer
	// One byte more than an adapter reads, so that an answer that is too large stays one.
	_, err = io.Copy(&body, io.LimitReader(lively{resp.Body, func() { idle.Reset(u.idle) }}, exchange.MaxAnswer+1))
	if err == nil && body.Len() > exchange.MaxAnswer {
		err = fmt.Errorf("it is larger than %d MiB", exchange.MaxAnswer>>20)
	}
	if err != nil {
		return nil, because(err)
	}
	whole := *resp
	whole.Body, whole.ContentLength = io.NopCloser(&body), int64(body.Len())
	return &whole, nil
}

// lively tells of each sign of life.
type lively struct {
	io.Reader

	alive func()
}

// Read implements io.Reader.
func (l lively) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.alive()
	}
	return n, err
}
