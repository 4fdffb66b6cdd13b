package openaicompat_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	fake "github.com/docket-gateway/docket/providers/providertest"
)

// want is an outcome's classification.
type want struct {
	kind      providers.OutcomeKind
	code      string
	retryable bool
	ack       bool // was it acknowledged before
	finish    string
	after     time.Duration
}

const (
	completed = providers.Completed
	failed    = providers.Failed
	unknown   = providers.Unknown
)

func (w want) check(t *testing.T, out providers.Outcome, r *recorder) {
	t.Helper()
	require.Equal(t, w.kind, out.Kind, "%+v", out.Failure)
	if w.kind == completed {
		require.Nil(t, out.Failure)
	} else {
		require.Nil(t, out.Output)
		require.Equal(t, w.code, out.Failure.Code, out.Failure.Message)
		require.Equal(t, w.retryable, out.Failure.Retryable)
		require.Equal(t, w.after, out.Failure.RetryAfter)
		require.NotContains(t, out.Failure.Message, "the fake provider says no")
		require.NotContains(t, out.Failure.Message, "sk-secret")
	}
	require.Equal(t, w.finish, out.FinishReason)
	acked := 0
	for _, s := range r.said {
		require.NotContains(t, s, "unknown", "only time-outs leave something to listen to")
		if strings.HasPrefix(s, "acknowledged") {
			acked++
		}
	}
	require.Equal(t, w.ack, acked == 1, "%v", r.said)
}

// page is what a box in the middle answers with; own is the provider itself.
func page(status int) fake.Behaviour { return fake.HTML(status) }

func own(status int, headers ...string) fake.Behaviour {
	return fake.Error(status, "fake_failure", headers...)
}

func chunk(content, finish string) string {
	return fmt.Sprintf(`{"id":"c1","choices":[{"index":0,"delta":{"content":%q},"finish_reason":%q}]}`, content, finish)
}

func whole(body string) fake.Behaviour { return fake.Status(200, "application/json", body) }

// One row for each line of the outcome table and of the cases from the field that a server can play. Misbehaviours of the
// connection and the stream, time-outs and failures before the request is sent have tests of their own.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		behave fake.Behaviour
		want   want
	}{
		// A definite no.
		"Status400":                   {own(400), want{failed, providers.CodeBadRequest, false, false, "", 0}},
		"Status400Bare":               {page(400), want{failed, providers.CodeBadRequest, false, false, "", 0}},
		"Status400ContentFilter":      {fake.Error(400, "content_filter"), want{failed, providers.CodeContentFilter, false, false, "", 0}},
		"Status401":                   {own(401), want{failed, providers.CodeUnauthorized, false, false, "", 0}},
		"Status402":                   {own(402), want{failed, providers.CodeQuotaExceeded, false, false, "", 0}},
		"Status403":                   {page(403), want{failed, providers.CodeUnauthorized, false, false, "", 0}},
		"Status404":                   {page(404), want{failed, providers.CodeBadRequest, false, false, "", 0}},
		"Status409":                   {own(409), want{failed, providers.CodeBadRequest, false, false, "", 0}},
		"Status413":                   {page(413), want{failed, providers.CodeBadRequest, false, false, "", 0}},
		"Status422":                   {own(422), want{failed, providers.CodeBadRequest, false, false, "", 0}},
		"Status429":                   {own(429), want{failed, providers.CodeRateLimited, true, false, "", 0}},
		"Status429Bare":               {page(429), want{failed, providers.CodeRateLimited, true, false, "", 0}},
		"Status429RetryAfter":         {own(429, "Retry-After", "7"), want{failed, providers.CodeRateLimited, true, false, "", 7 * time.Second}},
		"Status429RetryAfterDate":     {own(429, "Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT", "Date", "Sun, 06 Nov 1994 08:49:37 GMT"), want{failed, providers.CodeRateLimited, true, false, "", 30 * time.Second}},
		"Status429RetryAfterPast":     {own(429, "Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"), want{failed, providers.CodeRateLimited, true, false, "", 0}},
		"Status429RetryAfterMs":       {own(429, "Retry-After-Ms", "1500", "Retry-After", "2"), want{failed, providers.CodeRateLimited, true, false, "", 1500 * time.Millisecond}},
		"Status429RetryAfterNonsense": {own(429, "Retry-After", "soon"), want{failed, providers.CodeRateLimited, true, false, "", 0}},
		"Status429RetryAfterForEver":  {own(429, "Retry-After", "1e300"), want{failed, providers.CodeRateLimited, true, false, "", 30 * 24 * time.Hour}},
		"Status429SpendingLimit":      {fake.Error(429, "insufficient_quota"), want{failed, providers.CodeQuotaExceeded, false, false, "", 0}},
		"Status429SpendingLimitInWords": {fake.Status(429, "application/json", `{"error":{"message":"You exceeded your current quota, please check your plan."}}`),
			want{failed, providers.CodeQuotaExceeded, false, false, "", 0}},
		"Status301":           {fake.Status(301, "text/html", "", "Location", "/v1/chat/completions"), want{failed, providers.CodeRedirected, false, false, "", 0}},
		"Status307":           {fake.Status(307, "text/html", "", "Location", "/v1/chat/completions"), want{failed, providers.CodeRedirected, false, false, "", 0}},
		"Status308":           {fake.Status(308, "text/html", "", "Location", "/v1/chat/completions"), want{failed, providers.CodeRedirected, false, false, "", 0}},
		"Status500Own":        {own(500), want{failed, providers.CodeProviderError, true, false, "", 0}},
		"Status500OwnAsText":  {fake.Status(500, "application/json", `{"error":"model crashed"}`), want{failed, providers.CodeProviderError, true, false, "", 0}},
		"Status500OwnOldVLLM": {fake.Status(500, "application/json", `{"object":"error","message":"m","code":500}`), want{failed, providers.CodeProviderError, true, false, "", 0}},
		"Status503Own":        {own(503, "Retry-After", "3"), want{failed, providers.CodeOverloaded, true, false, "", 3 * time.Second}},
		"Status529Own":        {own(529), want{failed, providers.CodeOverloaded, true, false, "", 0}},

		// A box in the middle answered.
		"Status408":           {own(408), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status500Bare":       {page(500), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status500Empty":      {fake.Status(500, "application/json", ""), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status500OtherJSON":  {fake.Status(500, "application/json", `{"message":"Internal server error"}`), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status500NullError":  {fake.Status(500, "application/json", `{"error":null}`), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status502":           {page(502), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status502WithError":  {own(502), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status503Bare":       {page(503), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status504":           {own(504), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status524":           {page(524), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status529Bare":       {page(529), want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status500CutInError": {func(x *fake.Exchange) { x.Raw("HTTP/1.1 500 Oops\r\nContent-Length: 900\r\n\r\n{\"error\":{}}") }, want{unknown, providers.CodeGateway, false, false, "", 0}},
		"Status401CutInError": {func(x *fake.Exchange) { x.Raw("HTTP/1.1 401 No\r\nContent-Length: 900\r\n\r\n{\"err") }, want{failed, providers.CodeUnauthorized, false, false, "", 0}},

		// Status 200, and a no in it.
		"ErrorEventOverloaded": {fake.ErrorEvent("overloaded_error"), want{failed, providers.CodeOverloaded, true, true, "", 0}},
		"ErrorEventQuota":      {fake.ErrorEvent("insufficient_quota"), want{failed, providers.CodeQuotaExceeded, false, true, "", 0}},
		"ErrorEventRateLimit":  {fake.ErrorEvent("rate_limit_exceeded"), want{failed, providers.CodeRateLimited, true, true, "", 0}},
		"ErrorEventServer":     {fake.ErrorEvent("server_error"), want{failed, providers.CodeProviderError, true, true, "", 0}},
		"ErrorEventByName": {func(x *fake.Exchange) {
			x.Headers()
			x.Write("event: error\ndata: {\"code\":503,\"message\":\"busy\"}\n\n")
		}, want{failed, providers.CodeOverloaded, true, true, "", 0}},
		"NoChoices":          {fake.Events(`{"id":"c1","choices":[]}`, "[DONE]"), want{failed, providers.CodeMalformedAnswer, false, true, "", 0}},
		"NoChoicesWhole":     {whole(`{"choices":[]}`), want{failed, providers.CodeMalformedAnswer, false, true, "", 0}},
		"DoneAlone":          {fake.Events("[DONE]"), want{failed, providers.CodeMalformedAnswer, false, true, "", 0}},
		"HTMLLabelledStream": {fake.Status(200, "text/event-stream", "\n <html></html>"), want{failed, providers.CodeMalformedAnswer, false, true, "", 0}},
		"TextWith200":        {fake.Status(200, "text/plain", "upstream is resting"), want{failed, providers.CodeMalformedAnswer, false, true, "", 0}},
		"OtherJSONWith200":   {whole(`[1, 2]`), want{failed, providers.CodeMalformedAnswer, false, true, "", 0}},
		"DamagedEvent":       {fake.DamagedEvent(), want{failed, providers.CodeMalformedAnswer, false, true, "stop", 0}},
		"DamagedLine": {func(x *fake.Exchange) {
			x.Headers()
			x.Content("{")
			x.Write("dat" + x.Chunk("lost") + "\n\n")
			x.Content("}")
			x.Finish("stop", 1)
		}, want{failed, providers.CodeMalformedAnswer, false, true, "stop", 0}},
		"NumberWhereTextIsDue": {fake.Events(`{"choices":[{"delta":{"content":5},"finish_reason":"stop"}]}`, "[DONE]"), want{failed, providers.CodeMalformedAnswer, false, true, "", 0}},
		"InvalidUTF8":          {fake.Events("{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}", chunk("x", "stop"), "[DONE]"), want{failed, providers.CodeMalformedAnswer, false, true, "stop", 0}},
		"HalfASurrogatePair":   {fake.Events(`{"choices":[{"delta":{"content":"\ud83d"}}]}`, chunk("x", "stop"), "[DONE]"), want{failed, providers.CodeMalformedAnswer, false, true, "stop", 0}},
		"HugeEvent": {func(x *fake.Exchange) {
			x.Headers()
			x.Content(strings.Repeat("a", 5<<20))
			x.Finish("stop", 1)
		}, want{failed, providers.CodeMalformedAnswer, false, true, "", 0}},

		// Lost or cut.
		"NoHTTP":            {func(x *fake.Exchange) { x.Raw("SSH-2.0-OpenSSH\r\n") }, want{unknown, providers.CodeConnectionLost, false, false, "", 0}},
		"DoneWithoutFinish": {fake.Events(`{"choices":[{"delta":{"content":"{}"}}]}`, "[DONE]"), want{unknown, providers.CodeTruncatedStream, false, true, "", 0}},
		"DamagedAndCut":     {fake.Events(`{"choices":[{"del`, chunk("x", "")), want{unknown, providers.CodeTruncatedStream, false, true, "", 0}},
		"EmptyWith200":      {fake.Status(200, "text/event-stream", ""), want{unknown, providers.CodeTruncatedStream, false, true, "", 0}},

		// Complete, and of no use.
		"Length":                      {fake.Says(`{"a":`, "length"), want{failed, providers.CodeTruncated, false, true, "length", 0}},
		"LengthNoContent":             {fake.Says("", "length"), want{failed, providers.CodeTruncated, false, true, "length", 0}},
		"UsageIsTheLimitAndCut":       {atLimit(`{"a":1`), want{failed, providers.CodeTruncated, false, true, "stop", 0}},
		"UsageIsTheLimitAndANumber":   {atLimit(`-12`), want{failed, providers.CodeTruncated, false, true, "stop", 0}},
		"UsageIsTheLimitAndEmpty":     {atLimit(" "), want{failed, providers.CodeTruncated, false, true, "stop", 0}},
		"UsageIsTheLimitAndTheReason": {func(x *fake.Exchange) { x.Headers(); x.Content(`{"a":1}`); x.Finish("length", 1000) }, want{failed, providers.CodeTruncated, false, true, "length", 0}},
		"LengthAndThenStop":           {fake.Events(chunk("{}", "length"), chunk("", "stop"), "[DONE]"), want{failed, providers.CodeTruncated, false, true, "length", 0}},
		"FilterAndThenStop":           {fake.Events(chunk("{}", "content_filter"), chunk("", "stop"), "[DONE]"), want{failed, providers.CodeContentFilter, false, true, "content_filter", 0}},
		"StopAndThenLength":           {fake.Events(chunk("{}", "stop"), chunk("", "length"), "[DONE]"), want{failed, providers.CodeTruncated, false, true, "length", 0}},
		"OnlyReasoning": {func(x *fake.Exchange) {
			x.Headers()
			x.Data(`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`)
			x.Finish("stop", 1000)
		}, want{failed, providers.CodeTruncated, false, true, "stop", 0}},
		"ContentFilter":     {fake.Says("{", "content_filter"), want{failed, providers.CodeContentFilter, false, true, "content_filter", 0}},
		"Refusal":           {fake.Events(`{"choices":[{"delta":{"refusal":"I can"}}]}`, `{"choices":[{"delta":{"refusal":"not"},"finish_reason":"stop"}]}`, "[DONE]"), want{failed, providers.CodeRefused, false, true, "stop", 0}},
		"RefusalWhole":      {whole(`{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}`), want{failed, providers.CodeRefused, false, true, "stop", 0}},
		"StopAndNothing":    {fake.Says("", "stop"), want{failed, providers.CodeRefused, false, true, "stop", 0}},
		"ToolCall":          {fake.Events(`{"choices":[{"delta":{"tool_calls":[{"index":0}]},"finish_reason":"tool_calls"}]}`, "[DONE]"), want{failed, providers.CodeRefused, false, true, "tool_calls", 0}},
		"ToolCallAndStop":   {fake.Events(`{"choices":[{"delta":{"content":"{}","tool_calls":[{"index":0}]},"finish_reason":"stop"}]}`, "[DONE]"), want{failed, providers.CodeRefused, false, true, "stop", 0}},
		"NoCapacity":        {fake.Says("{", "insufficient_system_resource"), want{failed, providers.CodeOverloaded, true, true, "insufficient_system_resource", 0}},
		"BrokenOff":         {fake.Says("{", "error"), want{failed, providers.CodeProviderError, false, true, "error", 0}},
		"FinishNotKnown":    {fake.Says("{}", "moonlight"), want{failed, providers.CodeMalformedAnswer, false, true, "moonlight", 0}},
		"WholeWithoutWords": {whole(`{"choices":[{"message":{"content":"{}"}}]}`), want{failed, providers.CodeMalformedAnswer, false, true, "", 0}},

		// Complete. Whether the text keeps the schema is not the adapter's to say.
		"UsageIsTheLimit": {atLimit(` {"a":1}`), want{completed, "", false, true, "stop", 0}},
		"Good":            {fake.OK(), want{completed, "", false, true, "stop", 0}},
		"GoodWhole":       {fake.Whole("stop"), want{completed, "", false, true, "stop", 0}},
		"NotJSON":         {fake.Says("```json\n{}\n```", "stop"), want{completed, "", false, true, "stop", 0}},
		"OtherChoices":    {fake.Events(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, chunk("yes", "stop"), "[DONE]"), want{completed, "", false, true, "stop", 0}},
		"NullError":       {fake.Events(`{"error":null,"choices":[{"delta":{"content":"{}"},"finish_reason":"eos_token"}]}`, "[DONE]"), want{completed, "", false, true, "eos_token", 0}},
		"OddUsage":        {fake.Events(chunk("x", "stop"), `{"choices":[],"usage":{"completion_tokens":"many"}}`, "[DONE]"), want{completed, "", false, true, "stop", 0}},
		"DoneWithoutLine": {func(x *fake.Exchange) { x.Headers(); x.Data(chunk("x", "stop")); x.Write("data: [DONE]") }, want{completed, "", false, true, "stop", 0}},
		"Informational": {func(x *fake.Exchange) {
			body := "data: " + chunk("x", "stop") + "\n\ndata: [DONE]\n\n"
			x.Raw("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
		}, want{completed, "", false, true, "stop", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			b.server.Enqueue(tc.behave)
			out, r := b.send(t.Context(), "model")
			tc.want.check(t, out, r)
			require.Len(t, b.server.Log(), 1, "one attempt is one request")
		})
	}
}

// atLimit says that it used all the tokens that it was allowed.
func atLimit(output string) fake.Behaviour {
	return func(x *fake.Exchange) { x.Headers(); x.Content(output); x.Finish("stop", 1000) }
}

func TestOutputIsByteForByte(t *testing.T) {
	t.Parallel()
	text := "```json\n{ \"a\": 1.50,\t\"ü\": \"🖨️ \\\\u0041\" }\n``` "
	for name, behave := range map[string]fake.Behaviour{"Stream": fake.Says(text, "stop"), "SplitBytes": fake.SplitBytes(text)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			b.server.Enqueue(behave)
			out, _ := b.send(t.Context(), "model")
			require.Equal(t, text, string(out.Output))
		})
	}
}

func TestReportsUsageAndRequestID(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	out, r := b.send(t.Context(), "model")
	require.Equal(t, completed, out.Kind)
	require.Equal(t, answer, string(out.Output)) //nolint:testifylint // byte for byte is the point
	require.Equal(t, "req_fake_1", r.ack.ProviderRequestID)
	require.Equal(t, "req_fake_1", out.ProviderRequestID)
	require.Equal(t, 11, *out.Usage.InputTokens)
	require.Positive(t, *out.Usage.OutputTokens)

	// Billed tokens are told for failures too, and the completion's id stands in for a missing header.
	b.server.Enqueue(fake.Status(200, "application/json",
		`{"id":"chatcmpl-7","choices":[{"message":{"content":""},"finish_reason":"length"}],"usage":{"completion_tokens":1000}}`, "X-Request-Id", ""))
	out, _ = b.send(t.Context(), "model")
	require.Equal(t, providers.CodeTruncated, out.Failure.Code)
	require.Equal(t, "chatcmpl-7", out.ProviderRequestID)
	require.Equal(t, 1000, *out.Usage.OutputTokens)
	require.Nil(t, out.Usage.InputTokens)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for told, want := range map[string]*providers.Usage{
		`{"prompt_tokens":1000,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":400}}`: {InputTokens: new(1000), CachedInputTokens: new(400), OutputTokens: new(50)},
		`{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":0}}`:       {InputTokens: new(9), CachedInputTokens: new(0), OutputTokens: new(5)},
		`{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":null}`:                      {InputTokens: new(9), OutputTokens: new(5)},
		`{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":"none"}`:                    {InputTokens: new(9), OutputTokens: new(5)},
		`{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-1}}`:      {InputTokens: new(9), OutputTokens: new(5)},
		`{"prompt_tokens":99999999999,"completion_tokens":5}`:                                         {OutputTokens: new(5)},
		`{"prompt_tokens":2147483647,"completion_tokens":2147483648}`:                                 {InputTokens: new(providers.MaxTokens)},
		`{"prompt_tokens":1e400,"completion_tokens":99999999999999999999}`:                            nil,
	} {
		t.Run(told, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			b.server.Enqueue(fake.Status(200, "application/json",
				`{"id":"chatcmpl-7","choices":[{"message":{"content":"{}"},"finish_reason":"stop"}],"usage":`+told+`}`))
			out, _ := b.send(t.Context(), "model")
			require.Equal(t, completed, out.Kind, "an odd count is no reason to give an answer up")
			require.Equal(t, want, out.Usage)
			if want != nil && want.CachedInputTokens != nil && *want.CachedInputTokens > 0 {
				cost, ok := providers.Price{Input: "1000000", CachedInput: "1", Output: "1000000"}.Cost(*out.Usage)
				require.True(t, ok)
				require.Equal(t, "650.0004", cost)
			}
		})
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.server.OnModel("model", fake.Status(http.StatusTemporaryRedirect, "text/plain", "", "Location", b.cfg.BaseURL+"/chat/completions"))
	_, _ = b.send(t.Context(), "model")
	require.Len(t, b.server.Log(), 1)
}
