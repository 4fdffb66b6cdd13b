package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/responses"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

// decodeResponse decodes with the SDK's type, which takes anything for a response, and says what is none.
func decodeResponse(raw []byte) (responses.Response, bool) {
	var r responses.Response
	ok := exchange.WellFormed(raw) && json.Unmarshal(raw, &r) == nil &&
		r.Object == "response" && text(r.JSON.ID) && r.ID != "" && text(r.JSON.Status)
	return r, ok
}

// text says whether the field is a JSON string: the SDK makes text of numbers too.
func text(f respjson.Field) bool { return strings.HasPrefix(f.Raw(), `"`) }

// outcome is how a response ended, Unknown if it did not. A response that was cancelled or expired has no answer and never
// will.
func outcome(r responses.Response) providers.Outcome {
	out := providers.Outcome{ProviderRequestID: r.ID, Usage: usage(r)}
	fail := func(code, message string) providers.Outcome {
		out.Kind, out.Failure = providers.Failed, &providers.Failure{Code: code, Message: message}
		return out
	}
	switch r.Status {
	case responses.ResponseStatusQueued, responses.ResponseStatusInProgress:
		out.Kind = providers.Unknown
		out.Failure = &providers.Failure{Code: providers.CodeTruncatedStream, Message: "the response is " + string(r.Status)}
		return out
	case responses.ResponseStatusFailed:
		out.FinishReason = string(r.Status)
		e := exchange.ErrorBody{Code: string(r.Error.Code), Message: r.Error.Message}.InStream()
		out.Kind, out.Failure = e.Kind, e.Failure
		return out
	case responses.ResponseStatusCancelled:
		out.FinishReason = string(r.Status)
		return fail(providers.CodeCancelled, "the response was cancelled at the provider")
	case responses.ResponseStatusIncomplete:
		out.FinishReason = r.IncompleteDetails.Reason
		switch r.IncompleteDetails.Reason {
		case "max_output_tokens":
			return fail(providers.CodeTruncated, "the output was cut at the token limit")
		case "content_filter":
			return fail(providers.CodeContentFilter, "the provider's filter cut the output")
		}
		return fail(providers.CodeProviderError, "the provider broke the output off")
	case responses.ResponseStatusCompleted:
		out.FinishReason = string(r.Status)
	default:
		out.Kind = providers.Unknown // a later version of the API may have more ways to be under way
		out.Failure = &providers.Failure{Code: providers.CodeMalformedAnswer, Message: "the response's status is not known"}
		return out
	}

	output, refused, tool, ok := answer(r)
	switch {
	case !ok:
		return fail(providers.CodeMalformedAnswer, "the provider answered with a message that cannot be read")
	case refused:
		return fail(providers.CodeRefused, "the model refused")
	case tool:
		return fail(providers.CodeRefused, "the model asked for a tool instead of answering")
	case len(bytes.TrimSpace(output)) == 0:
		return fail(providers.CodeRefused, "the model answered with nothing")
	}
	out.Kind, out.Output = providers.Completed, output
	return out
}

// answer puts the text of the messages together. Comments on the way to the answer and reasoning are not part of it.
func answer(r responses.Response) (output []byte, refused, tool, ok bool) {
	for _, item := range r.Output {
		switch {
		case item.Type == "message" && item.Phase == responses.ResponseOutputMessagePhaseCommentary:
			continue
		case item.Type == "message":
		case item.Type == "reasoning":
			continue
		default:
			tool = true
			continue
		}
		for _, part := range item.Content {
			switch part.Type {
			case "output_text":
				if !text(part.JSON.Text) {
					return nil, false, false, false
				}
				output = append(output, part.Text...)
			case "refusal":
				refused = true
			default:
				return nil, false, false, false
			}
		}
	}
	return output, refused, tool, true
}

// usage returns the billed tokens, nil if they are not told.
func usage(r responses.Response) *providers.Usage {
	if !r.JSON.Usage.Valid() {
		return nil
	}
	cached := r.Usage.InputTokensDetails
	u := &providers.Usage{InputTokens: count(r.Usage.JSON.InputTokens, r.Usage.InputTokens),
		CachedInputTokens: count(cached.JSON.CachedTokens, cached.CachedTokens),
		OutputTokens:      count(r.Usage.JSON.OutputTokens, r.Usage.OutputTokens)}
	if u.InputTokens == nil && u.OutputTokens == nil {
		return nil
	}
	return u
}

func count(f respjson.Field, n int64) *int {
	if !f.Valid() || text(f) {
		return nil
	}
	return providers.Tokens(n)
}
