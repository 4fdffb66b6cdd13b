package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/docket-gateway/docket/internal/retryafter"
	"github.com/docket-gateway/docket/providers"
)

// ErrAnswerTooLarge is what Answer.Body returns beyond MaxAnswer.
var ErrAnswerTooLarge = errors.New("exchange: answer too large")

// ErrorBody is what a provider's own error says. Message is only looked at for what kind of error it is and never
// passed on, since providers quote keys and prompts in it.
type ErrorBody struct {
	Code       string
	Type       string
	Message    string
	RetryAfter time.Duration // as the body asks, beside the header Retry-After; 0 if it does not
}

// classifyStatus is the classification of answers that are not 2xx. whole says that the body came to its end.
func classifyStatus(resp *http.Response, body []byte, whole bool, readError func([]byte) (ErrorBody, bool)) providers.Outcome {
	status := resp.StatusCode
	var e ErrorBody
	own := false
	if readError != nil {
		e, own = readError(body)
	}
	own = own && whole
	said := fmt.Sprintf("the provider answered %d%s", status, e.label())
	var out providers.Outcome
	switch {
	case status >= 300 && status <= 399:
		out = failed(providers.CodeRedirected, said+"; redirects are not followed")
	case (status == http.StatusTooManyRequests || status == http.StatusBadRequest) && e.SpendingLimit(), status == http.StatusPaymentRequired:
		out = failed(providers.CodeQuotaExceeded, said)
	case status == http.StatusTooManyRequests:
		out = retryable(providers.CodeRateLimited, said)
	case status == http.StatusUnauthorized || status == http.StatusForbidden || own && e.badKey():
		out = failed(providers.CodeUnauthorized, said)
	case status == http.StatusRequestTimeout:
		out = unknown(providers.CodeGateway, said)
	case status >= 400 && status <= 499 && e.filtered():
		out = failed(providers.CodeContentFilter, said)
	case status >= 400 && status <= 499:
		out = failed(providers.CodeBadRequest, said)
	case status == 500 && own:
		out = retryable(providers.CodeProviderError, said)
	case (status == 503 || status == 529) && own:
		out = retryable(providers.CodeOverloaded, said)
	default:
		// 502, 504, bare 500, 503 and 529, and 5xx that only boxes in the middle use: the provider may be working.
		out = unknown(providers.CodeGateway, said)
	}
	if out.Kind == providers.Failed {
		// Who asks for it in two places means both.
		out.Failure.RetryAfter = max(retryafter.Parse(resp.Header, time.Now()), e.delay())
	}
	return out
}

// InStream classifies an error object that came with status 200.
func (e ErrorBody) InStream() providers.Outcome {
	out := e.inStream()
	out.Failure.RetryAfter = e.delay()
	return out
}

func (e ErrorBody) inStream() providers.Outcome {
	said := "the provider sent an error in its answer" + e.label()
	word := strings.ToLower(e.Code + " " + e.Type)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(word, w) {
				return true
			}
		}
		return false
	}
	switch {
	case e.SpendingLimit(), e.Code == "402":
		return failed(providers.CodeQuotaExceeded, said)
	case e.filtered():
		return failed(providers.CodeContentFilter, said)
	case has("overloaded", "capacity", "unavailable", "insufficient_system_resource"), e.Code == "503", e.Code == "529":
		return retryable(providers.CodeOverloaded, said)
	case has("rate_limit", "too_many_requests", "resource_exhausted"), e.Code == "429":
		return retryable(providers.CodeRateLimited, said)
	case has("authentication", "unauthenticated", "permission", "invalid_api_key"), e.badKey(), e.Code == "401", e.Code == "403":
		return failed(providers.CodeUnauthorized, said)
	case has("server_error", "internal_error", "api_error", "timeout_error"), e.Code == "500", e.Code == "INTERNAL":
		return retryable(providers.CodeProviderError, said)
	default:
		return failed(providers.CodeProviderError, said)
	}
}

// SpendingLimit says whether waiting will not help because money or quota is used up.
func (e ErrorBody) SpendingLimit() bool {
	for _, word := range []string{e.Code, e.Type} {
		switch strings.ToLower(word) {
		case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "exceeded_current_quota_error",
			"insufficient_balance", "insufficient_credits", "quota_exceeded", "spending_limit_reached", "account_deactivated",
			"billing_error":
			return true
		}
	}
	message := strings.ToLower(e.Message)
	for _, words := range []string{"exceeded your current quota", "spending limit", "spend limit", "billing hard limit",
		"insufficient balance", "insufficient credits", "credit balance is too low", "specified api usage limits"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

func (e ErrorBody) delay() time.Duration { return min(max(e.RetryAfter, 0), retryafter.Max) }

// badKey says whether the key is what is wrong, which Google tells with status 400.
func (e ErrorBody) badKey() bool {
	return e.Type == "API_KEY_INVALID" || e.Type == "API_KEY_EXPIRED"
}

func (e ErrorBody) filtered() bool {
	for _, word := range []string{e.Code, e.Type} {
		switch strings.ToLower(word) {
		case "content_filter", "content_policy_violation", "responsibleaipolicyviolation",
			"bio_policy", "misalignment_policy_violation": // of a failed response
			return true
		}
	}
	return false
}

var word = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// label returns the provider's code or type in brackets, if it is a mere word.
func (e ErrorBody) label() string {
	for _, w := range []string{e.Code, e.Type} {
		if word.MatchString(w) {
			return " (" + w + ")"
		}
	}
	return ""
}

// interrupted classifies an error in the middle of a 2xx answer's body.
func interrupted(err error) (providers.OutcomeKind, *providers.Failure) {
	if errors.Is(err, ErrAnswerTooLarge) {
		return providers.Failed, &providers.Failure{Code: providers.CodeMalformedAnswer,
			Message: fmt.Sprintf("the answer is larger than %d MiB", MaxAnswer>>20)}
	}
	return providers.Unknown, &providers.Failure{Code: providers.CodeConnectionLost,
		Message: "the connection was lost in the middle of the answer: " + reason(err)}
}

// reason says what an error was without quoting it: messages of net/http hold URLs and pieces of what was received.
func reason(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return "the host's name was not resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(err, syscall.EPIPE):
		return "broken pipe"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "ended early"
	case errors.Is(err, io.EOF):
		return "closed"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	case errors.As(err, &op):
		return op.Op + " failed"
	default:
		return "protocol error"
	}
}

func failed(code, message string) providers.Outcome {
	return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{Code: code, Message: message}}
}

func retryable(code, message string) providers.Outcome {
	out := failed(code, message)
	out.Failure.Retryable = true
	return out
}

func unknown(code, message string) providers.Outcome {
	return providers.Outcome{Kind: providers.Unknown, Failure: &providers.Failure{Code: code, Message: message}}
}
