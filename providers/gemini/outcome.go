package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/tidwall/gjson"
	"google.golang.org/genai"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

var errNotAResponse = errors.New("gemini: not a response")

// answer is what has come so far.
type answer struct {
	any       bool // an event came
	damaged   bool
	candidate bool
	id        string
	output    bytes.Buffer
	tool      bool
	other     bool // a part that is neither text nor a call
	finish    genai.FinishReason
	blocked   genai.BlockedReason
	usage     *providers.Usage
}

// response is the SDK's type without its decoding, which gives a whole answer up for a count of more than 32 bits.
type response genai.GenerateContentResponse

// add takes a chunk, decoded with the SDK's type. That takes any object for one, so what has nothing of a response is an
// error.
func (s *answer) add(data []byte) error {
	var r struct {
		response
		UsageMetadata json.RawMessage `json:"usageMetadata"`
	}
	if !exchange.WellFormed(data) {
		return errNotAResponse
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("gemini: decode a response: %w", err)
	}
	told := gjson.ParseBytes(r.UsageMetadata)
	if r.Candidates == nil && r.PromptFeedback == nil && !told.IsObject() && r.ResponseID == "" && r.ModelVersion == "" {
		return errNotAResponse
	}
	if r.ResponseID != "" {
		s.id = r.ResponseID
	}
	if told.IsObject() { // the sum so far, so that the last one counts
		s.usage = usage(told)
	}
	if f := r.PromptFeedback; f != nil && f.BlockReason != "" {
		s.blocked = f.BlockReason
	}
	for i, c := range r.Candidates {
		if c == nil {
			return errNotAResponse
		}
		if c.Index == 0 { // others are not asked for
			s.add1(c, gjson.GetBytes(data, fmt.Sprintf("candidates.%d.content.parts", i)).Array())
		}
	}
	return nil
}

// add1 takes what the chunk has of the candidate. raw are its parts as they came: a part of a kind that the SDK does not know is an empty
// one to it.
func (s *answer) add1(c *genai.Candidate, raw []gjson.Result) {
	s.candidate = true
	// A reason other than a normal end is not taken back by one.
	if f := c.FinishReason; f != "" && f != genai.FinishReasonUnspecified && (s.finish == "" || s.finish == genai.FinishReasonStop) {
		s.finish = f
	}
	if c.Content == nil {
		return
	}
	for i, p := range c.Content.Parts {
		switch {
		case p == nil:
			s.other = true
		case p.Thought:
		case p.FunctionCall != nil, p.ToolCall != nil, p.ExecutableCode != nil:
			s.tool = true
		case i < len(raw) && raw[i].Get("text").Exists():
			s.output.WriteString(p.Text)
		case len(p.ThoughtSignature) == 0:
			s.other = true
		}
	}
}

// usage is what is billed (GenerateContentResponseUsageMetadata): thoughts are billed as output, results of tools as input, and what
// came from the cache is a part of the prompt. A count of zero is left out on the wire.
func usage(told gjson.Result) *providers.Usage {
	in, out := sum(told, "promptTokenCount", "toolUsePromptTokenCount"), sum(told, "candidatesTokenCount", "thoughtsTokenCount")
	if in < 0 || out < 0 {
		return nil
	}
	u := &providers.Usage{OutputTokens: providers.Tokens(out)}
	if in > 0 { // no prompt is empty
		u.InputTokens = providers.Tokens(in)
	}
	if told.Get("cachedContentTokenCount").Exists() {
		u.CachedInputTokens = providers.Tokens(sum(told, "cachedContentTokenCount"))
	}
	return u
}

// sum adds counts up. It is beyond providers.MaxTokens if one of them is, or is none; negative if one is negative.
func sum(told gjson.Result, names ...string) (total int64) {
	for _, name := range names {
		n := told.Get(name)
		switch {
		case !n.Exists() || n.Type == gjson.Null:
		case n.Type != gjson.Number || n.Num > providers.MaxTokens || n.Num != math.Trunc(n.Num):
			total += providers.MaxTokens + 1
		case n.Num < 0:
			return -1
		default:
			total += int64(n.Num)
		}
	}
	return total
}

// with puts what is known beside the outcome: tokens are billed whatever becomes of them.
func (s *answer) with(out providers.Outcome) providers.Outcome {
	out.Usage = s.usage
	out.ProviderRequestID = s.id
	out.FinishReason = string(s.finish)
	return out
}

// outcome is the end of an answer that came to a clean end. whole says that it came in one piece.
func (s *answer) outcome(whole bool) providers.Outcome {
	fail := func(code, message string) providers.Outcome {
		return s.with(providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{Code: code, Message: message}})
	}
	switch {
	case s.blocked != "":
		if s.finish == "" {
			s.finish = genai.FinishReason(s.blocked) // the reason why nothing ran
		}
		return fail(providers.CodeContentFilter, "the provider's filter blocked the prompt")
	case s.finish == "" && !whole:
		return s.with(exchange.CutOff("the stream ended without a finish reason"))
	case s.damaged:
		return s.with(exchange.Malformed("pieces that are no responses"))
	case !s.candidate:
		return s.with(exchange.Malformed("a response without candidates"))
	}
	switch s.finish {
	case "":
		return s.with(exchange.Malformed("a response without a finish reason"))
	case genai.FinishReasonStop:
	case genai.FinishReasonMaxTokens, genai.FinishReasonContinuation:
		return fail(providers.CodeTruncated, "the output was cut at the token limit")
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonBlocklist, genai.FinishReasonProhibitedContent,
		genai.FinishReasonSPII, genai.FinishReasonImageSafety, genai.FinishReasonImageProhibitedContent, genai.FinishReasonImageRecitation:
		return fail(providers.CodeContentFilter, "the provider's filter cut the output")
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls:
		return fail(providers.CodeRefused, "the model asked for a tool instead of answering")
	case genai.FinishReasonLanguage, genai.FinishReasonOther, genai.FinishReasonNoImage, genai.FinishReasonImageOther:
		return fail(providers.CodeProviderError, "the provider broke the output off")
	default:
		return fail(providers.CodeMalformedAnswer, "the finish reason is not known")
	}
	switch {
	case s.tool:
		return fail(providers.CodeRefused, "the model asked for a tool instead of answering")
	case s.other:
		return s.with(exchange.Malformed("a part that is not text"))
	case len(bytes.TrimSpace(s.output.Bytes())) == 0:
		return fail(providers.CodeRefused, "the model answered with nothing")
	}
	return s.with(providers.Outcome{Kind: providers.Completed, Output: bytes.Clone(s.output.Bytes())})
}
