package webhooks

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"code.dny.dev/ssrf"
)

// Bounds of one try.
const (
	requestTimeout = 10 * time.Second // from the look-up of the name to the end of the answer
	dialTimeout    = 5 * time.Second
	maxHeader      = 64 << 10 // bytes of the answer's headers
	maxAnswer      = 64 << 10 // bytes of the answer's body that are read; what is in them does not matter
)

// newHTTPClient returns a client that calls no address but those on the public internet, unless private is set.
//
// The guard looks at the address of every connection after the name was resolved, so that a name that resolves to
// something else the second time gains nothing. There is no proxy, not even by environment, since the guard would see the
// proxy's address only; and no redirect is followed.
func newHTTPClient(private bool, in seams) *http.Client {
	d := &net.Dialer{Timeout: dialTimeout, Resolver: in.resolver}
	if !private {
		// The port was checked with the URL.
		d.Control = ssrf.New(ssrf.WithAnyPort()).Safe
	}
	return &http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            d.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: in.roots},
			TLSHandshakeTimeout:    dialTimeout,
			DisableKeepAlives:      true, // a stranger's server holds no connection of ours open
			MaxResponseHeaderBytes: maxHeader,
		},
	}
}
