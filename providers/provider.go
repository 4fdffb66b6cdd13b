// Package providers sends attempts to model providers: one folder per provider kind, one interface, one registry, and
// one classification of what can go wrong.
//
// It imports nothing of this module but internal/loopback and its own tokenizers: it knows no job, no database and no GraphQL.
package providers

import (
	"context"
	"encoding/json"
	"math"
	"time"
)

// Provider sends requests to one configured provider.
type Provider interface {
	// Send makes exactly one request and returns how it ended; it never retries. A provider that is configured as idempotent
	// may be sent the same request again later, with the same AttemptID. It reports to r, in order and from the
	// calling goroutine. After a time-out or a silence it calls r.Unknown and, while the connection is open, goes on
	// listening until Linger is over, so the returned outcome may still be Completed or Failed. A cancelled ctx ends it
	// soon with the code ABORTED: Failed if the request never began to be written, else Unknown. What runs at the provider by
	// a handle is left running then: whoever has the handle asks about it, or tells a Canceller to end it.
	Send(ctx context.Context, req Request, r Reporter) Outcome

	// AdapterVersion changes when the adapter's requests or its reading of answers change, so that contracts are run anew.
	AdapterVersion() string
}

// Retriever is a Provider that can be asked later what became of a request.
type Retriever interface {
	// Retrieve asks by the handle that came with the acknowledgement. It has no effects and may be called any number of
	// times, by any process. Completed and Failed are how the request itself ended; Unknown means that the provider still
	// works on it or cannot tell. An error means that it could not be asked. It ends soon after ctx does.
	Retrieve(ctx context.Context, q Query) (Outcome, error)
}

// Canceller is a Retriever whose requests can be ended too, once their answers are of no use any more.
type Canceller interface {
	Retriever

	// Cancel tells the provider to end the request with that handle, and returns what it says was used, nil if it does not
	// say. It may be called again, by any process, also about a request that has ended. An error means that the provider was not
	// reached, or refused. It ends soon after ctx does. Nothing is certain by it: a request may be completed all the same.
	Cancel(ctx context.Context, q Query) (*Usage, error)
}

// Query names a request of before.
type Query struct {
	AttemptID       string
	Handle          string
	Model           string
	MaxOutputTokens int             // as the request had it
	Schema          json.RawMessage // as the request had it
	Traceparent     string
}

// Request is one attempt's call. It always holds the original intent, never another attempt's answer.
type Request struct {
	AttemptID       string // the provider's idempotency key or client request id, where it has one
	Task            string
	Model           string
	System          string
	Prompt          string
	Input           json.RawMessage // the job's input, for the simulated provider
	Schema          json.RawMessage // the task's output schema
	Temperature     float64
	MaxOutputTokens int
	Traceparent     string // W3C trace context, may be empty
}

// Reporter hears of an attempt's progress. Its methods may be slow: signs of life that come meanwhile are told as one.
// After Unknown neither of the other two is called again, since nothing leads back from there to running. What comes late is
// told by the outcome, and to a LateReporter.
type Reporter interface {
	// Acknowledged is called at most once: response headers, a first stream event or a handle came.
	Acknowledged(a Acknowledgement)
	// Progress is called for every sign of life after the acknowledgement.
	Progress()
	// Unknown is called at most once, after a time-out, when nobody can tell any more what happens to the request. Send
	// goes on listening for Linger. A lost connection leaves nothing to listen to: it is told by the outcome alone.
	Unknown(f Failure)
}

// LateReporter is a Reporter that takes what the provider says first also when it says so late. A Reporter that wraps
// another passes it on by AcknowledgeLate.
type LateReporter interface {
	Reporter

	// AcknowledgedLate is called at most once, after Unknown, and only if Acknowledged was not: the provider took the request
	// after all. The attempt stays unknown, but it can be asked about by the handle.
	AcknowledgedLate(a Acknowledgement)
}

// AcknowledgeLate tells r of a late acknowledgement, if it takes one.
func AcknowledgeLate(r Reporter, a Acknowledgement) {
	if late, ok := r.(LateReporter); ok {
		late.AcknowledgedLate(a)
	}
}

// Acknowledgement is what the provider said first.
type Acknowledgement struct {
	ProviderRequestID string
	Handle            string // by which the provider can be asked later, may be empty
}

// OutcomeKind is how a request ended.
type OutcomeKind int

const (
	Completed OutcomeKind = iota + 1 // a complete answer came; whether it keeps the schema is not said
	Failed                           // the provider definitely said no, or the request never left
	Unknown                          // nobody can tell
)

// Outcome is the end of one request.
type Outcome struct {
	Kind              OutcomeKind
	Output            []byte   // Completed: the answer's text, byte for byte, never repaired
	Failure           *Failure // Failed and Unknown
	Usage             *Usage
	ProviderRequestID string
	FinishReason      string // the provider's own word
}

// Failure is a classified error. Message never holds keys, prompts or output.
type Failure struct {
	Code       string
	Message    string
	Retryable  bool          // another request to the same target may succeed
	RetryAfter time.Duration // as the provider asked, 0 if it did not
}

func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// Usage is what was billed. Nil counts were not told; the others are between 0 and MaxTokens.
type Usage struct {
	InputTokens       *int // all of them, those of the cache among them
	CachedInputTokens *int // the part of InputTokens that the provider took from its cache, also where it tells 0
	OutputTokens      *int
}

// MaxTokens is the greatest count of tokens that is believed: the greatest Int of GraphQL.
const MaxTokens = math.MaxInt32

// Tokens returns a count that a provider told, nil for one that is none: a negative one, or one beyond MaxTokens. Such a
// count counts as not told. To cut it down to a bound would make up a number, and price it.
func Tokens(n int64) *int {
	if n < 0 || n > MaxTokens {
		return nil
	}
	i := int(n)
	return &i
}

// Codes of failures that a client may act on.
const (
	CodeUnreachable        = "PROVIDER_UNREACHABLE"  // DNS, refused, TLS, dial time-out
	CodeTLS                = "TLS_FAILED"            // certificate verification; not retryable
	CodeNotSent            = "REQUEST_NOT_SENT"      // never fully written
	CodeSchemaNotSupported = "SCHEMA_NOT_SUPPORTED"  // the output schema has no form that the provider takes; nothing was sent
	CodeUnsupported        = "REQUEST_NOT_SUPPORTED" // the task asks for something that the provider does not take; nothing was sent
	CodeAborted            = "ABORTED"               // our own context ended
	CodeAckTimeout         = "ACK_TIMEOUT"           // UNKNOWN
	CodeIdleTimeout        = "IDLE_TIMEOUT"          // UNKNOWN
	CodeTotalTimeout       = "TOTAL_TIMEOUT"         // UNKNOWN
	CodeConnectionLost     = "CONNECTION_LOST"       // UNKNOWN
	CodeTruncatedStream    = "STREAM_TRUNCATED"      // UNKNOWN: ended without its end marker
	CodeGateway            = "GATEWAY_ERROR"         // UNKNOWN: 408, 502, 504, bare 500 and 503
	CodeBadRequest         = "PROVIDER_REJECTED"     // 400, 404, 413, 422 and other 4xx
	CodeUnauthorized       = "PROVIDER_UNAUTHORIZED" // 401, 403
	CodeRateLimited        = "RATE_LIMITED"          // 429
	CodeQuotaExceeded      = "QUOTA_EXCEEDED"        // 402, or 429 and 400 that are a spending limit; not retryable
	CodeRedirected         = "REDIRECTED"            // 3xx
	CodeProviderError      = "PROVIDER_ERROR"        // 500 with the provider's error body, an error object with 200
	CodeOverloaded         = "PROVIDER_OVERLOADED"   // 503, 529, in-stream overload
	CodeMalformedAnswer    = "MALFORMED_ANSWER"      // complete but not readable: HTML, no choices, broken stream line
	CodeRefused            = "REFUSED"
	CodeContentFilter      = "CONTENT_FILTERED"
	CodeCancelled          = "PROVIDER_CANCELLED" // ended at the provider by somebody, without an answer
	CodeTruncated          = "OUTPUT_TRUNCATED"   // cut at the token limit
	CodeNotJSON            = "OUTPUT_NOT_JSON"
	CodeAdapter            = "INTERNAL_ERROR"  // our own adapter broke down
	CodePromptTooLong      = "PROMPT_TOO_LONG" // does not fit the context window beside its output budget; not sent
	CodeSecretEchoed       = "SECRET_ECHOED"   // the answer holds our API key
	CodeJammed             = "JAMMED"          // demo/inkjet
)
