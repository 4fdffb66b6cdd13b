package gemini_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/gemini/geminitest"
	"github.com/docket-gateway/docket/providers/providertest"
)

// ended is what a request has to come to.
type ended struct {
	kind      providers.OutcomeKind
	code      string
	retryable bool
	after     time.Duration
	finish    string
}

func requireEnds(t *testing.T, behave providertest.Behaviour, want ended) {
	t.Helper()
	conformance.Bubble(t, adapter(), nil, func(t *testing.T, b *conformance.Bundle) {
		b.Server.Enqueue(behave)
		out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
		got := ended{kind: out.Kind, finish: out.FinishReason}
		if out.Failure != nil {
			got.code, got.retryable, got.after = out.Failure.Code, out.Failure.Retryable, out.Failure.RetryAfter
			require.NotContains(t, out.Failure.Message, "the fake provider says")
			require.NotContains(t, out.Failure.Message, conformance.Key)
		}
		require.Equal(t, want, got, "%+v", out.Failure)
		require.Len(t, b.Server.Log(), 1, "one attempt is one request")
	})
}

func requireRows(t *testing.T, rows map[string]struct {
	behave providertest.Behaviour
	want   ended
}) {
	t.Helper()
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireEnds(t, tc.behave, tc.want)
		})
	}
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for code, reasons := range map[string][]string{
		providers.CodeTruncated: {"MAX_TOKENS", "CONTINUATION"},
		providers.CodeContentFilter: {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
			"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"},
		providers.CodeRefused:         {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"},
		providers.CodeProviderError:   {"LANGUAGE", "OTHER", "NO_IMAGE", "IMAGE_OTHER"},
		providers.CodeMalformedAnswer: {"SOMETHING_NEW", "stop"},
	} {
		for _, reason := range reasons {
			t.Run(reason, func(t *testing.T) {
				t.Parallel()
				requireEnds(t, geminitest.Finishes(`{"a":1}`, reason), ended{kind: providers.Failed, code: code, finish: reason})
				requireEnds(t, geminitest.FinishesAlone(reason), ended{kind: providers.Failed, code: code, finish: reason})
			})
		}
	}
	requireEnds(t, geminitest.Finishes(`{"a":1}`, "FINISH_REASON_UNSPECIFIED"), ended{kind: providers.Unknown, code: providers.CodeTruncatedStream})
}

func TestBlockedPrompts(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK", "SOMETHING_NEW"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			requireEnds(t, geminitest.Blocks(reason), ended{kind: providers.Failed, code: providers.CodeContentFilter, finish: reason})
		})
	}
	conformance.Bubble(t, adapter(), nil, func(t *testing.T, b *conformance.Bundle) {
		b.Server.Enqueue(geminitest.Blocks("SAFETY"))
		out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
		require.Equal(t, 11, *out.Usage.InputTokens)
		require.Zero(t, *out.Usage.OutputTokens)
		require.Equal(t, "resp-fake-1", out.ProviderRequestID)
	})
}

const (
	piece   = `{"candidates":[{"content":{"parts":[{"text":"{"}],"role":"model"}}],"responseId":"r"}`
	stop    = `{"candidates":[{"content":{"parts":[{"text":"}"}],"role":"model"},"finishReason":"STOP"}],"responseId":"r"}`
	problem = `{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}`
)

// There is no end marker: a finish reason and the end of the stream make an answer complete.
func TestEndOfTheStream(t *testing.T) {
	t.Parallel()
	type row = struct {
		behave providertest.Behaviour
		want   ended
	}
	complete := ended{kind: providers.Completed, finish: "STOP"}
	cut := ended{kind: providers.Unknown, code: providers.CodeTruncatedStream}
	damaged := ended{kind: providers.Failed, code: providers.CodeMalformedAnswer, finish: "STOP"}
	overloaded := ended{kind: providers.Failed, code: providers.CodeOverloaded, retryable: true}
	requireRows(t, map[string]row{
		"Complete":           {geminitest.Chunks(piece, stop), complete},
		"UsageAfterwards":    {geminitest.Chunks(piece, stop, `{"usageMetadata":{"promptTokenCount":1}}`), complete},
		"NoCandidateAtAll":   {geminitest.Chunks(`{"usageMetadata":{"promptTokenCount":1},"responseId":"r"}`), cut},
		"EmptyCandidates":    {geminitest.Chunks(`{"candidates":[],"responseId":"r"}`), cut},
		"DamagedAndCut":      {geminitest.Chunks(piece, `{"candi`), cut},
		"EmptyObject":        {geminitest.Chunks(piece, `{}`, stop), damaged},
		"NotAnObject":        {geminitest.Chunks(piece, `5`, stop), damaged},
		"TextIsANumber":      {geminitest.Chunks(`{"candidates":[{"content":{"parts":[{"text":5}]}}]}`, stop), damaged},
		"LoneSurrogate":      {geminitest.Chunks(`{"candidates":[{"content":{"parts":[{"text":"\ud83d"}]}}]}`, stop), damaged},
		"NullCandidate":      {geminitest.Chunks(`{"candidates":[null]}`, stop), damaged},
		"OtherCandidate":     {geminitest.Chunks(`{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]},"finishReason":"SAFETY"}]}`, piece, stop), complete},
		"FilterIsNotUndone":  {geminitest.Chunks(`{"candidates":[{"finishReason":"SAFETY"}]}`, stop), ended{kind: providers.Failed, code: providers.CodeContentFilter, finish: "SAFETY"}},
		"ErrorAfterTheStop":  {geminitest.Chunks(stop, problem), ended{kind: providers.Failed, code: providers.CodeOverloaded, retryable: true, finish: "STOP"}},
		"ErrorEvent":         {geminitest.ErrorEvent(503, "UNAVAILABLE"), overloaded},
		"ErrorLines":         {geminitest.ErrorLines(503, "UNAVAILABLE"), overloaded},
		"ErrorAlone":         {providertest.Status(200, "text/event-stream", "\r\n"+problem), overloaded},
		"LinesAlone":         {providertest.Status(200, "text/event-stream", "upstream is resting\n"), cut},
		"LinesThatAreNoJSON": {func(x *providertest.Exchange) { geminitest.Chunks(piece, stop)(x); x.Write("upstream is resting\n") }, damaged},
		"ReasonThenReset": {func(x *providertest.Exchange) { geminitest.Chunks(piece, stop)(x); x.Break(true) },
			ended{kind: providers.Unknown, code: providers.CodeConnectionLost, finish: "STOP"}},
	})
}

// Older models sent a finish reason with each chunk, and Google splits text where it likes.
func TestOutputIsAllTextButThoughts(t *testing.T) {
	t.Parallel()
	conformance.Bubble(t, adapter(), nil, func(t *testing.T, b *conformance.Bundle) {
		b.Server.Enqueue(geminitest.Chunks(
			`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"{\"a\""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":90},"responseId":"r"}`,
			`{"candidates":[{"content":{"parts":[{"text":":"},{"text":" 1"},{"thoughtSignature":"AAAA"}]},"finishReason":"STOP"}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"}"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"toolUsePromptTokenCount":1,"cachedContentTokenCount":5,"candidatesTokenCount":4,"thoughtsTokenCount":20,"totalTokenCount":32},"responseId":"r"}`))
		out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
		require.Equal(t, `{"a": 1}`, string(out.Output), "%+v", out.Failure)
		require.Equal(t, 8, *out.Usage.InputTokens, "cached tokens are part of the prompt's")
		require.Equal(t, 5, *out.Usage.CachedInputTokens)
		require.Equal(t, 24, *out.Usage.OutputTokens, "the last sum, with the thoughts")
		require.Equal(t, "r", out.ProviderRequestID)
	})
}

func TestUsageThatIsNotTold(t *testing.T) {
	t.Parallel()
	for metadata, check := range map[string]func(*providers.Usage){
		`{"candidatesTokenCount":-1}`:                               func(u *providers.Usage) { require.Nil(t, u) },
		`{"promptTokenCount":-1}`:                                   func(u *providers.Usage) { require.Nil(t, u) },
		`{"candidatesTokenCount":3}`:                                func(u *providers.Usage) { require.Nil(t, u.InputTokens); require.Equal(t, 3, *u.OutputTokens) },
		`{"promptTokenCount":3}`:                                    func(u *providers.Usage) { require.Equal(t, 3, *u.InputTokens); require.Zero(t, *u.OutputTokens) },
		`{"promptTokenCount":3,"candidatesTokenCount":99999999999}`: func(u *providers.Usage) { require.Equal(t, &providers.Usage{InputTokens: new(3)}, u) },
		`{"promptTokenCount":1e300,"candidatesTokenCount":3}`:       func(u *providers.Usage) { require.Equal(t, &providers.Usage{OutputTokens: new(3)}, u) },
		`{"promptTokenCount":2147483647,"toolUsePromptTokenCount":1,"candidatesTokenCount":"3"}`: func(u *providers.Usage) { require.Equal(t, &providers.Usage{}, u) },
		`{"promptTokenCount":2147483647,"cachedContentTokenCount":2147483648}`: func(u *providers.Usage) {
			require.Equal(t, providers.MaxTokens, *u.InputTokens)
			require.Nil(t, u.CachedInputTokens)
		},
	} {
		conformance.Bubble(t, adapter(), nil, func(t *testing.T, b *conformance.Bundle) {
			b.Server.Enqueue(geminitest.Chunks(piece, stop, `{"usageMetadata":`+metadata+`}`))
			out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
			require.Equal(t, providers.Completed, out.Kind, "%+v", out.Failure)
			check(out.Usage)
		})
	}
}

func TestPartsThatAreNotText(t *testing.T) {
	t.Parallel()
	for code, parts := range map[string][]string{
		providers.CodeRefused: {`{"functionCall":{"name":"f"}}`, `{"executableCode":{"language":"PYTHON","code":"1"}}`, `{"toolCall":{}}`},
		providers.CodeMalformedAnswer: {`{"inlineData":{"mimeType":"image/png","data":"AAAA"}}`, `{"fileData":{"fileUri":"x"}}`,
			`{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}`, `{"somethingNew":"x"}`, `{}`, `null`},
	} {
		for _, part := range parts {
			t.Run(part, func(t *testing.T) {
				t.Parallel()
				requireEnds(t, geminitest.Part(part), ended{kind: providers.Failed, code: code, finish: "STOP"})
			})
		}
	}
}

// A server in between that makes no events of it: one response, or a list of them as without alt=sse.
func TestWholeAnswers(t *testing.T) {
	t.Parallel()
	type row = struct {
		behave providertest.Behaviour
		want   ended
	}
	whole := func(body string) providertest.Behaviour { return providertest.Status(200, "application/json", body) }
	requireRows(t, map[string]row{
		"One":             {whole(stop), ended{kind: providers.Completed, finish: "STOP"}},
		"List":            {whole("[" + piece + ",\n" + stop + "]"), ended{kind: providers.Completed, finish: "STOP"}},
		"CutList":         {whole("[" + piece + ",\n"), ended{kind: providers.Unknown, code: providers.CodeTruncatedStream}},
		"NoFinishReason":  {whole(piece), ended{kind: providers.Failed, code: providers.CodeMalformedAnswer}},
		"NoCandidates":    {whole(`{"responseId":"r"}`), ended{kind: providers.Failed, code: providers.CodeMalformedAnswer}},
		"EmptyCandidates": {whole(`{"candidates":[],"responseId":"r"}`), ended{kind: providers.Failed, code: providers.CodeMalformedAnswer}},
		"EmptyList":       {whole(`[]`), ended{kind: providers.Failed, code: providers.CodeMalformedAnswer}},
		"ErrorInAList":    {whole("[" + piece + "," + problem + "]"), ended{kind: providers.Failed, code: providers.CodeOverloaded, retryable: true}},
		"Blocked":         {whole(`{"promptFeedback":{"blockReason":"SAFETY"}}`), ended{kind: providers.Failed, code: providers.CodeContentFilter, finish: "SAFETY"}},
	})
}

// Each 429 says that one exceeded one's current quota. What is violated says whether waiting helps.
func TestErrors(t *testing.T) {
	t.Parallel()
	type row = struct {
		behave providertest.Behaviour
		want   ended
	}
	spent := ended{kind: providers.Failed, code: providers.CodeQuotaExceeded}
	unauthorized := ended{kind: providers.Failed, code: providers.CodeUnauthorized}
	rejected := ended{kind: providers.Failed, code: providers.CodeBadRequest}
	unknown := ended{kind: providers.Unknown, code: providers.CodeGateway}
	limited := func(after time.Duration) ended {
		return ended{kind: providers.Failed, code: providers.CodeRateLimited, retryable: true, after: after}
	}
	exhausted := func(message string) providertest.Behaviour {
		return geminitest.ErrorWith(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", message)
	}
	retry := func(delay string) string {
		return `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"` + delay + `"}`
	}
	info := func(reason string) string {
		return `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"` + reason + `","domain":"googleapis.com"}`
	}
	requireRows(t, map[string]row{
		"PerMinute":       {geminitest.Quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "36s"), limited(36 * time.Second)},
		"FractionalDelay": {geminitest.Quota("GenerateContentInputTokensPerModelPerMinute-FreeTier", "20.5s"), limited(20500 * time.Millisecond)},
		"NoDelay":         {exhausted("Resource has been exhausted (e.g. check quota)."), limited(0)},
		"UnreadableDelay": {geminitest.ErrorWith(429, "RESOURCE_EXHAUSTED", "x", retry("soon")), limited(0)},
		"NegativeDelay":   {geminitest.ErrorWith(429, "RESOURCE_EXHAUSTED", "x", retry("-5s")), limited(0)},
		"EndlessDelay":    {geminitest.ErrorWith(429, "RESOURCE_EXHAUSTED", "x", retry("2000000h")), limited(30 * 24 * time.Hour)},
		"OddDetails":      {geminitest.ErrorWith(429, "RESOURCE_EXHAUSTED", "x", `{"@type":5}`, `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[5,{"quotaId":5}]}`), limited(0)},
		"HeaderIsLonger": {func(x *providertest.Exchange) {
			x.Respond(429, "application/json", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[`+retry("2s")+`]}}`, "Retry-After", "9")
		}, limited(9 * time.Second)},
		"PerDay":     {geminitest.Quota(perDay, "36s"), spent},
		"NoQuota":    {exhausted("You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: m, limit: 0, model: x\nPlease retry in 20s."), spent},
		"SomeQuota":  {exhausted("You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: m, limit: 05, model: x"), limited(0)},
		"Prepayment": {exhausted("Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing."), spent},
		"Cap":        {exhausted("Your billing account has exceeded its monthly spending cap."), spent},

		"BadKey":           {geminitest.ErrorWith(400, "INVALID_ARGUMENT", "API key not valid: "+conformance.Key, info("API_KEY_INVALID")), unauthorized},
		"NoPermission":     {geminitest.Error(403, "PERMISSION_DENIED"), unauthorized},
		"BadArgument":      {geminitest.Error(400, "INVALID_ARGUMENT"), rejected},
		"BadPlace":         {geminitest.Error(400, "FAILED_PRECONDITION"), rejected},
		"UnknownModel":     {geminitest.Error(404, "NOT_FOUND"), rejected},
		"DelayOfA503":      {geminitest.ErrorWith(503, "UNAVAILABLE", "x", retry("3s")), ended{kind: providers.Failed, code: providers.CodeOverloaded, retryable: true, after: 3 * time.Second}},
		"Deadline":         {geminitest.Error(504, "DEADLINE_EXCEEDED"), unknown},
		"Bare500":          {providertest.Status(500, "application/json", `{"error":{}}`), unknown},
		"AnotherError":     {providertest.Status(500, "application/json", `{"error":"text"}`), unknown},
		"ErrorInAList":     {providertest.Status(500, "application/json", `[{"error":{"code":500,"message":"x","status":"INTERNAL"}}]`), ended{kind: providers.Failed, code: providers.CodeProviderError, retryable: true}},
		"NotTheirsInAList": {providertest.Status(500, "application/json", `[]`), unknown},

		"StreamedRateLimit":     {geminitest.ErrorLines(429, "RESOURCE_EXHAUSTED"), limited(0)},
		"StreamedDelay":         {geminitest.Chunks(piece, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[`+retry("4s")+`]}}`), limited(4 * time.Second)},
		"StreamedPermission":    {geminitest.ErrorLines(403, "PERMISSION_DENIED"), unauthorized},
		"StreamedBadKey":        {geminitest.Chunks(`{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[` + info("API_KEY_INVALID") + `]}}`), unauthorized},
		"StreamedArgument":      {geminitest.ErrorLines(400, "INVALID_ARGUMENT"), ended{kind: providers.Failed, code: providers.CodeProviderError}},
		"StreamedWithoutStatus": {geminitest.Chunks(piece, `{"error":{"code":503,"message":"x"}}`), ended{kind: providers.Failed, code: providers.CodeOverloaded, retryable: true}},
	})
}
