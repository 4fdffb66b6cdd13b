package cassette

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	vcr "gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"
)

// Of headers only these are kept. Keys, cookies, and the names of accounts, organisations and projects stand in others, and
// new ones may come at any time.
var (
	keptOfRequests  = []string{"Accept", "Anthropic-Beta", "Anthropic-Version", "Content-Type", "User-Agent", stepHeader}
	keptOfResponses = []string{"Content-Type", "Date", "Request-Id", "Retry-After", "Retry-After-Ms", "X-Request-Id"}
)

// secretQuery names query parameters that hold keys.
var secretQuery = regexp.MustCompile(`(?i)^(key|.*(api|access|auth)[-_]?key|.*token|.*secret|sig|signature|password)$`)

// accounts are names of organisations and projects as providers put them into their errors.
var accounts = regexp.MustCompile(`\borg-[A-Za-z0-9]{16,}\b|\bproj_[A-Za-z0-9]{16,}\b|\bprojects/[0-9]{6,}\b|\bproject_number:[0-9]{6,}\b`)

const redacted = "[redacted]"

// scrub is the hook that takes everything out of an interaction that is nobody's business, before it is written. What
// the adapter read while recording was not touched.
func (w *wire) scrub(i *vcr.Interaction) error {
	q, a := &i.Request, &i.Response
	q.Headers, a.Headers = w.kept(q.Headers, keptOfRequests), w.kept(a.Headers, keptOfResponses)
	q.Body, a.Body = w.redact(q.Body), w.redact(a.Body)
	q.ContentLength, a.ContentLength = int64(len(q.Body)), int64(len(a.Body))
	q.Trailer, a.Trailer, q.TransferEncoding, a.TransferEncoding = nil, nil, nil, nil
	q.RemoteAddr, q.RequestURI, q.Form = "", "", nil // the query is in the URL
	a.Status = w.redact(a.Status)
	u, err := url.Parse(q.URL)
	if err != nil {
		return err
	}
	u.RawQuery = scrubQuery(u.Query()).Encode()
	q.URL, q.Host = w.redact(u.String()), u.Host
	return nil
}

func (w *wire) kept(h http.Header, names []string) http.Header {
	out := http.Header{}
	for name, values := range h {
		if slices.Contains(names, http.CanonicalHeaderKey(name)) {
			for _, v := range values {
				out.Add(name, w.redact(v))
			}
		}
	}
	return out
}

func (w *wire) redact(text string) string {
	return accounts.ReplaceAllString(w.registry.Redact(w.target, text), redacted)
}

// scrubQuery changes and returns q.
func scrubQuery(q url.Values) url.Values {
	for name := range q {
		if secretQuery.MatchString(name) {
			q.Set(name, redacted)
		}
	}
	return q
}

// leaks says whether the key is in a part of the interaction.
func (w *wire) leaks(i *vcr.Interaction) bool {
	texts := []string{i.Request.URL, i.Request.Body, i.Request.Host, i.Response.Body, i.Response.Status}
	for _, h := range []http.Header{i.Request.Headers, i.Response.Headers} {
		for name, values := range h {
			texts = append(append(texts, name), values...)
		}
	}
	return slices.ContainsFunc(texts, w.holdsKey)
}

// holdsKey looks for the key as it stands, escaped as in JSON or in an event of JSON, and escaped as in a URL.
func (w *wire) holdsKey(text string) bool {
	holds := func(s string) bool { return w.registry.HoldsKey(w.target, []byte(s)) }
	if holds(text) {
		return true
	}
	if plain, err := url.QueryUnescape(text); err == nil && holds(plain) {
		return true
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			line = data
		}
		if strings.Contains(line, `\`) && holds(line) {
			return true
		}
	}
	return false
}
