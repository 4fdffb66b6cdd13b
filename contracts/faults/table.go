package faults

import (
	"io"
	"net"
	"net/http"
	"time"

	"github.com/docket-gateway/docket/providers"
)

// table is section "What an outcome means" of docs/state-machine.md, as far as a provider or a network can bring it about.
func table(w providers.WireFaults, cut fault) []fault {
	failed := func(code string) verdict { return verdict{kind: providers.Failed, code: code} }
	unknown := func(code string) verdict { return verdict{kind: providers.Unknown, code: code} }
	page := func(status int) http.HandlerFunc {
		return answers(providers.WireAnswer{Status: status, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
			Body: "<!doctype html><html><body>Service temporarily unavailable</body></html>"})
	}
	filter := fault{aspect: "content_filter", what: "the filter of contents", handler: answers(w.Filter), want: failed(providers.CodeContentFilter)}
	if w.Filter.Status == 0 {
		filter.missing = "the provider has no filter of contents"
	}
	return []fault{
		{aspect: "rate_limit", what: "too many requests", handler: answers(w.RateLimit),
			want: verdict{kind: providers.Failed, code: providers.CodeRateLimited, retryable: true, retryAfter: providers.WireRetryAfter}},
		{aspect: "overload", what: "an overload that the provider tells", handler: answers(w.Overload),
			want: verdict{kind: providers.Failed, code: providers.CodeOverloaded, retryable: true}},
		{aspect: "gateway", what: "503 with the page of a box in the middle", handler: page(http.StatusServiceUnavailable), want: unknown(providers.CodeGateway)},
		{aspect: "refusal", what: "a refusal", handler: answers(w.Refusal), want: failed(providers.CodeRefused)},
		{aspect: "truncation", what: "an answer cut at the token limit", handler: answers(w.Truncation), want: failed(providers.CodeTruncated)},
		filter,
		{aspect: "html", what: "an HTML page with 200", handler: page(http.StatusOK), want: failed(providers.CodeMalformedAnswer)},
		{aspect: "malformed_stream", what: "a stream with a broken event", handler: answers(w.Damaged), want: failed(providers.CodeMalformedAnswer)},
		{aspect: "truncated_stream", what: "a stream that ends without its end marker", handler: answers(w.Begun), want: unknown(providers.CodeTruncatedStream)},
		cut,
		{aspect: "connection_reset", what: "a connection that is reset after the request was read", handler: resets, want: unknown(providers.CodeConnectionLost)},
		{aspect: "ack_timeout", what: "silence before the acknowledgement", handler: silent,
			change: func(c *providers.Config) { c.AckTimeout = short }, want: unknown(providers.CodeAckTimeout)},
		{aspect: "idle_timeout", what: "silence in the middle of a stream", handler: beginsThen(w.Begun, silent),
			change: func(c *providers.Config) { c.IdleTimeout = short }, want: unknown(providers.CodeIdleTimeout)},
		{aspect: "total_timeout", what: "signs of life without an end", handler: beginsThen(w.Begun, drips),
			change: func(c *providers.Config) { c.TotalTimeout = short }, want: unknown(providers.CodeTotalTimeout)},
	}
}

// answers is an answer that comes as a whole.
func answers(a providers.WireAnswer) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		writeHead(w, a)
		_, _ = io.WriteString(w, a.Body)
	}
}

func writeHead(w http.ResponseWriter, a providers.WireAnswer) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
}

// beginsThen sends the answer and goes on with what comes then.
func beginsThen(a providers.WireAnswer, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answers(a)(w, r)
		_ = http.NewResponseController(w).Flush()
		then(w, r)
	}
}

// silent waits until the client goes.
func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// drips sends comments, which mean nothing in a stream of events, until the client goes.
func drips(w http.ResponseWriter, r *http.Request) {
	t := time.NewTicker(short / 10)
	defer t.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-t.C:
		}
		if _, err := io.WriteString(w, ": still here\n\n"); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// resets closes the connection so that the client sees a reset.
func resets(w http.ResponseWriter, _ *http.Request) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// breaksOff closes the connection in the middle of an answer.
func breaksOff(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
