package exchange

import (
	"bytes"
	"context"
	"errors"
	"net/http"
)

// errSecondRequest is what an SDK gets that tries to send again.
var errSecondRequest = errors.New("exchange: one attempt is one request")

// single is the transport that an SDK's client is given: it sends one request by the exchange's own client and keeps the
// answer. It is used from one goroutine.
type single struct {
	http *http.Client
	ctx  context.Context //nolint:containedctx // of the exchange: an SDK ends its own when its call returns, and the body is read after that

	used bool
	resp *http.Response
	err  error
}

// RoundTrip implements http.RoundTripper. The answer that it returns has no body.
func (s *single) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.used {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errSecondRequest
	}
	s.used = true
	req = req.Clone(s.ctx)
	// With an idempotency key net/http holds a POST for replayable and sends it again by itself when a re-used
	// connection breaks. It cannot where it has no way to rewind the body.
	req.GetBody = nil
	s.resp, s.err = s.http.Do(req) //nolint:gosec // where requests go is the configuration's to say
	if s.err != nil {
		return nil, s.err //nolint:wrapcheck // a transport's errors are passed on as they are
	}
	head := *s.resp
	head.Body, head.ContentLength = http.NoBody, 0
	return &head, nil
}

func (s *single) close() {
	if s.resp != nil {
		_ = s.resp.Body.Close()
	}
}

// post makes the request of a call that has no SDK.
func (c Call) post(ctx context.Context, hc *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(c.Body))
	if err != nil {
		return err //nolint:wrapcheck // only whether there is one is looked at
	}
	if c.Header != nil {
		req.Header = c.Header.Clone()
	}
	resp, err := hc.Do(req)
	if err != nil {
		return err //nolint:wrapcheck // only whether there is one is looked at
	}
	return resp.Body.Close() //nolint:wrapcheck // only whether there is one is looked at
}
