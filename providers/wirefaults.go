package providers

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// WireAnswer is an answer as a provider writes it.
type WireAnswer struct {
	Status int
	Header http.Header
	Body   string
}

// WireError is an error that a provider tells in JSON.
func WireError(status int, body string) WireAnswer {
	return WireAnswer{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// WireStream is a stream of events.
func WireStream(events ...string) WireAnswer {
	return WireAnswer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: strings.Join(events, "")}
}

// Waiting is the answer with a Retry-After of WireRetryAfter.
func (a WireAnswer) Waiting() WireAnswer {
	a.Header = a.Header.Clone()
	a.Header.Set("Retry-After", strconv.Itoa(int(WireRetryAfter/time.Second)))
	return a
}

// WireFaults are a provider's own ways to fail, as they look on the wire. Their shapes are what its API documents and its SDK decodes;
// what they are to be classified as is not said here, but in docs/state-machine.md, for all providers in the same way.
type WireFaults struct {
	RateLimit  WireAnswer // asks for a wait of WireRetryAfter, in the provider's own way
	Overload   WireAnswer // with the provider's own error
	Refusal    WireAnswer // a complete answer in which the model refuses
	Truncation WireAnswer // a complete answer that is cut at the limit of its tokens
	Filter     WireAnswer // the filter of contents stepped in; without a status: the provider has none
	Damaged    WireAnswer // a complete stream with a broken event in its middle
	Begun      WireAnswer // how a good stream begins: with all that acknowledges it and a piece of output, and nothing more
}

// WireRetryAfter is how long the rate limit of WireFaults asks to wait.
const WireRetryAfter = 7 * time.Second

// WireFaulter is a Provider that tells how its provider fails.
type WireFaulter interface {
	// WireFaults are those of an answer to a request for the model.
	WireFaults(model string) WireFaults
}

// WireFaultsOf returns the target's; ok is false if its adapter does not tell them.
func WireFaultsOf(t Target) (f WireFaults, ok bool) {
	for p := t.Sender; p != nil; {
		if w, ok := p.(WireFaulter); ok {
			return w.WireFaults(t.Model.Name), true
		}
		u, ok := p.(interface{ Unwrap() Provider })
		if !ok {
			break
		}
		p = u.Unwrap()
	}
	return WireFaults{}, false
}
