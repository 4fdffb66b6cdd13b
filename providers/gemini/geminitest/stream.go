package geminitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/docket-gateway/docket/providers/providertest"
)

const jsonType = "application/json; charset=UTF-8"

// object is a JSON object in the making.
type object = map[string]any

// stream is one response on its way.
type stream struct {
	x          *providertest.Exchange
	candidates int // tokens so far
	thoughts   int
}

func open(x *providertest.Exchange) *stream {
	x.Headers()
	return &stream{x: x}
}

// data sends one event with the line ends that Google's servers have.
func (s *stream) data(v any) { s.x.Write("data: " + encode(v) + "\r\n\r\n") }

// response is GenerateContentResponse, its usage (GenerateContentResponseUsageMetadata) the sum so far. What is zero is
// left out, as protobuf's JSON does.
func (s *stream) response(fields object) object {
	usage := object{"promptTokenCount": 11, "cachedContentTokenCount": providertest.CachedTokens, "totalTokenCount": 11 + s.candidates + s.thoughts,
		"promptTokensDetails": []any{object{"modality": "TEXT", "tokenCount": 11}}}
	if s.candidates > 0 {
		usage["candidatesTokenCount"] = s.candidates
	}
	if s.thoughts > 0 {
		usage["thoughtsTokenCount"] = s.thoughts
	}
	r := object{"usageMetadata": usage, "modelVersion": s.x.Entry.Model, "responseId": fmt.Sprintf("resp-fake-%d", s.x.Entry.Number)}
	for k, v := range fields {
		r[k] = v
	}
	return r
}

// send sends a chunk with Candidate, its Content and Parts. finish is empty before the last one.
func (s *stream) send(finish string, parts ...any) {
	candidate := object{"index": 0}
	if len(parts) > 0 {
		candidate["content"] = object{"parts": parts, "role": "model"}
	}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	s.data(s.response(object{"candidates": []any{candidate}}))
}

// think sends a part that is a thought, which is billed and not output.
func (s *stream) think(words string) {
	s.thoughts = 1
	s.send("", object{"text": words, "thought": true})
}

func text(s string) object { return object{"text": s} }

// OK streams a good answer.
func OK() providertest.Behaviour {
	return func(x *providertest.Exchange) { Says(output(x.Entry.Body))(x) }
}

// Says streams a thought and then the given output.
func Says(output string) providertest.Behaviour { return Finishes(output, "STOP") }

// Finishes streams the given output and ends with the finish reason, an empty one for none. All its tokens but one are the candidate's.
func Finishes(output, reason string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.think("Let me think. ")
		pieces := providertest.Pieces(output, 3)
		for _, p := range pieces {
			s.send("", text(p))
		}
		s.candidates = providertest.Tokens(output) - s.thoughts
		// The last chunk has no text, but the signature of the thoughts: Part.ThoughtSignature.
		s.send(reason, object{"text": "", "thoughtSignature": "c2lnbmF0dXJl"})
	}
}

// FinishesAlone ends with the reason and no content at all, as filters do: "When streaming, content is empty if content filters
// blocks the output" (types.go, FinishReasonSafety). Ratings are SafetyRating.
func FinishesAlone(reason string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.data(s.response(object{"candidates": []any{object{
			"index": 0, "finishReason": reason, "finishMessage": "the fake provider says no",
			"safetyRatings": []any{object{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": true}},
		}}}))
	}
}

// Blocks says that the prompt was blocked: GenerateContentResponsePromptFeedback, and no candidate.
func Blocks(reason string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.data(s.response(object{"promptFeedback": object{"blockReason": reason,
			"safetyRatings": []any{object{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH"}}}}))
	}
}

// Thinks streams thoughts that are a refusal, and ends without output.
func Thinks() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.think("I cannot help with that.")
		s.send("STOP")
	}
}

// Starts acknowledges, streams a piece and then nothing.
func Starts() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		open(x).send("", text("{"))
		x.Until(nil)
	}
}

// Cut streams pieces and ends cleanly, without a finish reason.
func Cut() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.send("", text("{"))
		s.send("", text(`"text":`))
	}
}

// Damaged streams a good answer with one broken event in its middle.
func Damaged() providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.send("", text("{"))
		x.Write("data: " + `{"candidates":[{"content":{"parts":[{"te` + "\r\n\r\n")
		s.send("STOP", text("}"))
	}
}

// Part streams a candidate with that part after a piece of text.
func Part(part string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		s := open(x)
		s.send("", text("{}"))
		s.candidates = 1
		s.send("STOP", json.RawMessage(part))
	}
}

// Tool ends with a call of a function, without being offered one: FunctionCall.
func Tool() providertest.Behaviour { return Part(`{"functionCall":{"name":"look_up","args":{}}}`) }

// Chunks streams chunks as they are given, and ends cleanly.
func Chunks(data ...string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		x.Headers()
		for _, d := range data {
			x.Write("data: " + d + "\r\n\r\n")
		}
	}
}

// Error is the API's own error with the given status and google.rpc.Code. Headers are pairs.
func Error(status int, code string, headers ...string) providertest.Behaviour {
	return providertest.Status(status, jsonType, errorBody(status, code, "the fake provider says no"), headers...)
}

// ErrorWith is Error with a message and details of google/rpc/error_details.proto.
func ErrorWith(status int, code, message string, details ...string) providertest.Behaviour {
	return providertest.Status(status, jsonType, errorBody(status, code, message, details...))
}

// Quota is the 429 of a quota, in the words that all of them have. id is the violated quota's, delay that of RetryInfo.
func Quota(id, delay string) providertest.Behaviour {
	return ErrorWith(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED",
		"You exceeded your current quota, please check your plan and billing details. the fake provider says no\nPlease retry in "+delay+".",
		`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"`+id+`","quotaDimensions":{"location":"global","model":"fake"},"quotaValue":"10"}]}`,
		`{"@type":"type.googleapis.com/google.rpc.Help","links":[{"description":"Learn more about Gemini API quotas","url":"https://ai.google.dev/gemini-api/docs/rate-limits"}]}`,
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"`+delay+`"}`)
}

// ErrorLines streams a piece and then an error as the API writes it into a stream: lines of JSON that are no event.
func ErrorLines(status int, code string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		open(x).send("", text("{"))
		x.Write(errorBody(status, code, "the fake provider says no"))
	}
}

// ErrorEvent streams a piece and then an error as an event.
func ErrorEvent(status int, code string) providertest.Behaviour {
	return func(x *providertest.Exchange) {
		open(x).send("", text("{"))
		x.Write("data: " + strings.Join(strings.Fields(errorBody(status, code, "the fake provider says no")), " ") + "\r\n\r\n")
	}
}

// errorBody is responseWithError with APIError, indented as Google's servers do.
func errorBody(status int, code, message string, details ...string) string {
	e := object{"code": status, "message": message, "status": code}
	if len(details) > 0 {
		e["details"] = json.RawMessage("[" + strings.Join(details, ",") + "]")
	}
	b, err := json.MarshalIndent(object{"error": e}, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("geminitest: %v", err)) // not reachable, but for details that are not JSON
	}
	return string(b) + "\n"
}
