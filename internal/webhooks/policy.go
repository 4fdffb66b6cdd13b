package webhooks

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"code.dny.dev/ssrf"
)

// maxURL is the longest callback URL in bytes.
const maxURL = 2048

// Why a callback URL is not taken, as sentences for the client.
var (
	errNotConfigured = errors.New("completion webhooks are not configured here")
	errTooLong       = errors.New("must have at most 2048 bytes")
	errNoURL         = errors.New("must be an absolute https URL")
	errUserInfo      = errors.New("must not hold a user or password")
	errFragment      = errors.New("must not hold a fragment")
	errPort          = errors.New("must have port 443 or one from 1024 on")
	errPrivate       = errors.New("must be an address on the public internet")
)

// policy says which URLs may be called at all. It holds when a URL is given and again before every try, since the
// configuration may have changed in between.
type policy struct{ private bool }

func (p policy) check(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, errTooLong
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		return nil, errNoURL // url.Parse's own words repeat the URL
	}
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !p.private):
		return nil, errNoURL
	case u.User != nil:
		return nil, errUserInfo
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return nil, errFragment
	case !p.port(u.Port()):
		return nil, errPort
	case !p.private && inner(u.Hostname()):
		return nil, errPrivate
	}
	return u, nil
}

// port keeps callbacks away from the well-known ports of other protocols.
func (p policy) port(text string) bool {
	if text == "" {
		return true
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0 && (p.private || n == 443 || n >= 1024)
}

// inner recognises what needs no look-up to be refused. It only spares a client the wait: the guard of the connection is
// the one that counts.
func inner(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ssrf.New().SafeAddr(ip) != nil
}
