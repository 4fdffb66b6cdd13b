package conformance

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/providertest"
)

const (
	completed = providers.Completed
	failed    = providers.Failed
	unknown   = providers.Unknown
)

type want struct {
	kind      providers.OutcomeKind
	code      string
	retryable bool
	acked     bool
	finish    bool // the provider said why it ended
	after     time.Duration
}

// outcomes has one case for each row of the outcome table that a server can play.
func outcomes(t *testing.T, a Adapter) {
	type row struct {
		behave providertest.Behaviour
		want   want
	}
	f := a.Fake
	rows := map[string]row{
		"Success": {f.Says(Output), want{kind: completed, acked: true, finish: true}},
		"NotJSON": {f.Says("```json\n{}\n```"), want{kind: completed, acked: true, finish: true}},
		"Refusal": {f.Refuses, want{kind: failed, code: providers.CodeRefused, acked: true, finish: true}},
		"Filter":  {f.Filters, want{kind: failed, code: providers.CodeContentFilter, acked: true, finish: !f.FiltersByError}},
		"Length":  {f.AtLimit, want{kind: failed, code: providers.CodeTruncated, acked: true, finish: true}},
		"Nothing": {f.Says(""), want{kind: failed, code: providers.CodeRefused, acked: true, finish: true}},

		"BadRequest":    {f.Error(http.StatusBadRequest, "fake"), want{kind: failed, code: providers.CodeBadRequest}},
		"Unauthorized":  {f.Error(http.StatusUnauthorized, "fake"), want{kind: failed, code: providers.CodeUnauthorized}},
		"Forbidden":     {f.Error(http.StatusForbidden, "fake"), want{kind: failed, code: providers.CodeUnauthorized}},
		"NotFound":      {f.Error(http.StatusNotFound, "fake"), want{kind: failed, code: providers.CodeBadRequest}},
		"TooLarge":      {providertest.HTML(http.StatusRequestEntityTooLarge), want{kind: failed, code: providers.CodeBadRequest}},
		"Redirect":      {providertest.Status(http.StatusTemporaryRedirect, "text/html", "", "Location", "/elsewhere"), want{kind: failed, code: providers.CodeRedirected}},
		"BareRateLimit": {providertest.HTML(http.StatusTooManyRequests), want{kind: failed, code: providers.CodeRateLimited, retryable: true}},

		"RequestTimeout": {f.Error(http.StatusRequestTimeout, "fake"), want{kind: unknown, code: providers.CodeGateway}},
		"BareInternal":   {providertest.HTML(http.StatusInternalServerError), want{kind: unknown, code: providers.CodeGateway}},
		"BadGateway":     {providertest.HTML(http.StatusBadGateway), want{kind: unknown, code: providers.CodeGateway}},
		"BareOverload":   {providertest.HTML(http.StatusServiceUnavailable), want{kind: unknown, code: providers.CodeGateway}},
		"GatewayTimeout": {providertest.HTML(http.StatusGatewayTimeout), want{kind: unknown, code: providers.CodeGateway}},

		"Page":         {providertest.HTML(http.StatusOK), want{kind: failed, code: providers.CodeMalformedAnswer, acked: true}},
		"Text":         {providertest.Status(http.StatusOK, "text/plain", "upstream is resting"), want{kind: failed, code: providers.CodeMalformedAnswer, acked: true}},
		"OtherJSON":    {providertest.Status(http.StatusOK, "application/json", `{"hello":"world"}`), want{kind: failed, code: providers.CodeMalformedAnswer, acked: true}},
		"ErrorWith200": {f.Error(http.StatusOK, "fake"), want{kind: failed, code: providers.CodeProviderError, acked: true}},
		"Damaged":      {f.Damaged, want{kind: failed, code: providers.CodeMalformedAnswer, acked: true}},

		"Drop":        {providertest.Drop(), want{kind: unknown, code: providers.CodeConnectionLost}},
		"NoHTTP":      {func(x *providertest.Exchange) { x.Raw("SSH-2.0-OpenSSH\r\n") }, want{kind: unknown, code: providers.CodeConnectionLost}},
		"Cut":         {f.Cut, want{kind: unknown, code: providers.CodeTruncatedStream, acked: true}},
		"EmptyStream": {providertest.Status(http.StatusOK, "text/event-stream", ""), want{kind: unknown, code: providers.CodeTruncatedStream, acked: true}},
		"CutShort":    {providertest.WrongContentLength(), want{kind: unknown, code: providers.CodeConnectionLost, acked: true}},
	}
	if f.CallsTool != nil {
		rows["Tool"] = row{f.CallsTool, want{kind: failed, code: providers.CodeRefused, acked: true, finish: true}}
	}
	if c := f.RateLimit; c.Status != 0 {
		rows["RateLimit"] = row{f.Error(c.Status, c.Code), want{kind: failed, code: providers.CodeRateLimited, retryable: true}}
		rows["RateLimitRetryAfter"] = row{f.Error(c.Status, c.Code, "Retry-After", "7"), want{kind: failed, code: providers.CodeRateLimited, retryable: true, after: 7 * time.Second}}
	}
	if c := f.Quota; c.Status != 0 {
		rows["Quota"] = row{f.Error(c.Status, c.Code), want{kind: failed, code: providers.CodeQuotaExceeded}}
	}
	if c := f.Overload; c.Status != 0 {
		rows["Overload"] = row{f.Error(c.Status, c.Code), want{kind: failed, code: providers.CodeOverloaded, retryable: true}}
	}
	if c := f.Internal; c.Status != 0 {
		rows["Internal"] = row{f.Error(c.Status, c.Code), want{kind: failed, code: providers.CodeProviderError, retryable: true}}
	}
	if f.OverloadInStream != nil {
		rows["OverloadInStream"] = row{f.OverloadInStream, want{kind: failed, code: providers.CodeOverloaded, retryable: true, acked: true}}
	}
	if f.InternalInStream != nil {
		rows["InternalInStream"] = row{f.InternalInStream, want{kind: failed, code: providers.CodeProviderError, retryable: true, acked: true}}
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Bubble(t, a, nil, func(t *testing.T, b *Bundle) {
				b.Server.Enqueue(r.behave)
				out := b.Sender.Send(t.Context(), Request(), b.Recorder)
				r.want.check(t, a, out, b)
			})
		})
	}
	t.Run("SuccessToTheByte", func(t *testing.T) {
		t.Parallel()
		Bubble(t, a, nil, func(t *testing.T, b *Bundle) {
			b.Server.Enqueue(f.Says(Output), f.Says("```json\n{}\n```"))
			out := b.Sender.Send(t.Context(), Request(), b.Recorder)
			require.Equal(t, Output, string(out.Output), "%+v", out.Failure) //nolint:testifylint // to the byte
			require.NotNil(t, out.Usage)
			require.Equal(t, 11, *out.Usage.InputTokens)
			require.NotNil(t, out.Usage.CachedInputTokens, "what came from the cache has its own price")
			require.Equal(t, providertest.CachedTokens, *out.Usage.CachedInputTokens)
			require.Equal(t, providertest.Tokens(Output), *out.Usage.OutputTokens)
			out = b.Sender.Send(t.Context(), Request(), &Recorder{})
			require.Equal(t, "```json\n{}\n```", string(out.Output), "output is never repaired")
		})
	})
	t.Run("UsageOfWhatWasNotUsable", func(t *testing.T) {
		t.Parallel()
		for i, behave := range []providertest.Behaviour{f.Refuses, f.AtLimit, f.Filters} {
			Bubble(t, a, nil, func(t *testing.T, b *Bundle) {
				b.Server.Enqueue(behave)
				out := b.Sender.Send(t.Context(), Request(), b.Recorder)
				require.NotNil(t, out.Usage, "tokens are billed whatever becomes of them")
				require.NotNil(t, out.Usage.InputTokens)
				if i < 2 || !f.FiltersByError {
					require.NotNil(t, out.Usage.OutputTokens)
				}
			})
		}
	})
}

func (w want) check(t *testing.T, a Adapter, out providers.Outcome, b *Bundle) {
	t.Helper()
	require.Equal(t, w.kind, out.Kind, "%+v", out.Failure)
	if w.kind == completed {
		require.Nil(t, out.Failure)
	} else {
		require.Nil(t, out.Output)
		require.Equal(t, w.code, out.Failure.Code, out.Failure.Message)
		require.Equal(t, w.retryable, out.Failure.Retryable)
		require.Equal(t, w.after, out.Failure.RetryAfter)
		for _, secret := range []string{"secret", "the fake provider says", "I cannot"} {
			require.NotContains(t, out.Failure.Message, secret)
		}
	}
	if w.finish {
		require.NotEmpty(t, out.FinishReason)
	}
	if w.kind == failed && !w.acked {
		require.Empty(t, out.FinishReason, "nothing ran that could end")
	}
	acknowledged := 0
	for _, s := range b.Recorder.Said {
		require.NotContains(t, s, "unknown", "only time-outs leave something to listen to")
		acknowledged++
	}
	// With a handle that stands in the body there is none to acknowledge before the body says so.
	if !a.Config.Background || w.finish {
		require.Equal(t, w.acked, acknowledged == 1, "%v", b.Recorder.Said)
	}
	require.Len(t, b.Server.Log(), 1, "one attempt is one request")
}
