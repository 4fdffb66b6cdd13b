package openai_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/conformance"
	"github.com/docket-gateway/docket/providers/openai/openaitest"
	"github.com/docket-gateway/docket/providers/providertest"
)

// background is the adapter with requests in the background, and the account that they run at.
func background() (conformance.Adapter, *openaitest.Account) {
	a, account := responsesAdapter(), openaitest.NewAccount()
	a.Config.Background = true
	a.Fake.Protocol = account.Protocol()
	return a, account
}

func TestConformsInTheBackground(t *testing.T) {
	t.Parallel()
	a, _ := background()
	conformance.Run(t, a)
}

func TestTheHandleIsToldBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	a, account := background()
	conformance.Bubble(t, a, nil, func(t *testing.T, b *conformance.Bundle) {
		b.Server.Enqueue(func(x *providertest.Exchange) {
			x.Pause(3 * time.Second) // headers alone say nothing of the response
			account.Runs()(x)
		})
		out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
		require.Equal(t, providers.Unknown, out.Kind)
		require.Equal(t, "resp_fake_1", b.Recorder.Ack.Handle)
		require.Equal(t, "req_fake_1", b.Recorder.Ack.ProviderRequestID)
		require.Equal(t, []string{"acknowledged 3s", "unknown IDLE_TIMEOUT 23s"}, b.Recorder.Said)
		require.Empty(t, account.Cancelled(), "a time-out leaves it running, to be asked for")
	})
}

// Headers without a first event are no acknowledgement in the background: there is no handle to ask by.
func TestHeadersAloneAreNoAcknowledgementInTheBackground(t *testing.T) {
	t.Parallel()
	a, _ := background()
	conformance.Bubble(t, a, nil, func(t *testing.T, b *conformance.Bundle) {
		b.Server.Enqueue(func(x *providertest.Exchange) { x.Headers(); x.Until(nil) })
		out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
		require.Equal(t, providers.Unknown, out.Kind)
		require.Equal(t, []string{"unknown ACK_TIMEOUT 10s"}, b.Recorder.Said)
	})
}

func TestAHandleThatComesLateIsTold(t *testing.T) {
	t.Parallel()
	a, account := background()
	conformance.Bubble(t, a, nil, func(t *testing.T, b *conformance.Bundle) {
		b.Server.Enqueue(func(x *providertest.Exchange) {
			x.Pause(12 * time.Second)
			account.Runs()(x)
		})
		out := b.Sender.Send(t.Context(), conformance.Request(), b.Recorder)
		require.Equal(t, providers.Unknown, out.Kind)
		require.Equal(t, providers.CodeAckTimeout, out.Failure.Code)
		require.Equal(t, []string{"unknown ACK_TIMEOUT 10s"}, b.Recorder.Said)
		require.Equal(t, providers.Acknowledgement{ProviderRequestID: "req_fake_1", Handle: "resp_fake_1"}, b.Recorder.Late)
	})
}

// Whoever has the handle may ask for the response, or cancel it.
func TestAStoppedRequestLeavesItsResponseRunning(t *testing.T) {
	t.Parallel()
	a, account := background()
	conformance.Bubble(t, a, nil, func(t *testing.T, b *conformance.Bundle) {
		b.Server.Enqueue(account.Runs())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b.Recorder.On = func(string) { cancel() }
		out := b.Sender.Send(ctx, conformance.Request(), b.Recorder)
		require.Equal(t, providers.CodeAborted, out.Failure.Code)
		require.Equal(t, "resp_fake_1", b.Recorder.Ack.Handle)
		require.Empty(t, account.Cancelled())
		require.Len(t, b.Server.Log(), 1)
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status, what string // what the account keeps
		behave       providertest.Behaviour
		cancelled    []string
		tokens       int // 0: none are told
		err          string
		within       time.Duration
	}{
		"Runs":      {status: "in_progress", cancelled: []string{"resp_1"}},
		"Waits":     {status: "queued", cancelled: []string{"resp_1"}},
		"Again":     {status: "cancelled"},
		"Completed": {status: "completed", what: conformance.Output, tokens: 11},
		"Gone":      {err: providers.CodeBadRequest},
		"WrongKey":  {behave: openaitest.Error(http.StatusUnauthorized, "invalid_api_key"), err: providers.CodeUnauthorized},
		"Gateway":   {behave: providertest.HTML(http.StatusBadGateway), err: providers.CodeGateway},
		"Page":      {behave: providertest.HTML(http.StatusOK), err: providers.CodeMalformedAnswer},
		"Silent":    {behave: providertest.Hang(), err: providers.CodeAborted, within: 5 * time.Second},
		"Other": {behave: providertest.Status(http.StatusOK, "application/json", `{"object":"response","id":"resp_2","status":"cancelled"}`),
			err: providers.CodeMalformedAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, account := background()
			conformance.Bubble(t, a, nil, func(t *testing.T, b *conformance.Bundle) {
				if tc.behave != nil {
					b.Server.Enqueue(tc.behave)
				} else if tc.status != "" {
					account.Put("resp_1", tc.status, tc.what)
				}
				canceller, ok := b.Sender.(providers.Canceller)
				require.True(t, ok)
				start := time.Now()
				used, err := canceller.Cancel(t.Context(), providers.Query{AttemptID: "att_1", Handle: "resp_1", Model: conformance.Model})
				require.Equal(t, tc.within, time.Since(start), "it is not waited for longer")
				require.Equal(t, tc.cancelled, account.Cancelled())
				if tc.err != "" {
					var f *providers.Failure
					require.ErrorAs(t, err, &f)
					require.Equal(t, tc.err, f.Code)
					return
				}
				require.NoError(t, err)
				if tc.tokens == 0 {
					require.Nil(t, used)
				} else {
					require.Equal(t, tc.tokens, *used.InputTokens)
				}
				e := b.Server.Log()[0]
				require.Equal(t, "POST /v1/responses/resp_1/cancel", e.Method+" "+e.Path)
				require.Equal(t, []string{"att_1"}, e.Header.Values("X-Client-Request-Id"))
				require.Empty(t, e.Header.Values("Idempotency-Key"), "the key is the first request's")
			})
		})
	}
}

func TestRetrieve(t *testing.T) {
	t.Parallel()
	const none = "\x00"
	for name, tc := range map[string]struct {
		status, what string // what the account keeps
		behave       providertest.Behaviour
		kind         providers.OutcomeKind
		code         string
		err          string
	}{
		"Completed":  {status: "completed", what: conformance.Output, kind: providers.Completed},
		"Limit":      {status: "incomplete", what: "max_output_tokens", kind: providers.Failed, code: providers.CodeTruncated},
		"Filter":     {status: "incomplete", what: "content_filter", kind: providers.Failed, code: providers.CodeContentFilter},
		"Failed":     {status: "failed", what: "server_error", kind: providers.Failed, code: providers.CodeProviderError},
		"RateLimit":  {status: "failed", what: "rate_limit_exceeded", kind: providers.Failed, code: providers.CodeRateLimited},
		"Policy":     {status: "failed", what: "bio_policy", kind: providers.Failed, code: providers.CodeContentFilter},
		"Cancelled":  {status: "cancelled", kind: providers.Failed, code: providers.CodeCancelled},
		"Queued":     {status: "queued", kind: providers.Unknown, code: providers.CodeTruncatedStream},
		"InProgress": {status: "in_progress", kind: providers.Unknown, code: providers.CodeTruncatedStream},
		"NewStatus":  {status: "resting", kind: providers.Unknown, code: providers.CodeMalformedAnswer},
		"Gone":       {status: none, kind: providers.Unknown, code: providers.CodeBadRequest},

		"RateLimited": {behave: openaitest.Error(http.StatusTooManyRequests, "rate_limit_exceeded"), err: providers.CodeRateLimited},
		"WrongKey":    {behave: openaitest.Error(http.StatusUnauthorized, "invalid_api_key"), err: providers.CodeUnauthorized},
		"Gateway":     {behave: providertest.HTML(http.StatusBadGateway), err: providers.CodeGateway},
		"Page":        {behave: providertest.HTML(http.StatusOK), err: providers.CodeMalformedAnswer},
		"BareGone":    {behave: providertest.Status(http.StatusOK, "application/json", `{"error":{"message":"no"}}`), err: providers.CodeMalformedAnswer},
		"Dropped":     {behave: providertest.Drop(), err: providers.CodeConnectionLost},
		"Silent":      {behave: providertest.Hang(), err: providers.CodeAckTimeout},
		"Other": {behave: providertest.Status(http.StatusOK, "application/json", `{"object":"response","id":"resp_2","status":"failed"}`),
			err: providers.CodeMalformedAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, account := background()
			conformance.Bubble(t, a, nil, func(t *testing.T, b *conformance.Bundle) {
				if tc.behave != nil {
					b.Server.Enqueue(tc.behave)
				} else if tc.status != none {
					account.Put("resp_1", tc.status, tc.what)
				}
				asker, ok := b.Sender.(providers.Retriever)
				require.True(t, ok)
				start := time.Now()
				out, err := asker.Retrieve(t.Context(), providers.Query{AttemptID: "att_1", Handle: "resp_1", Model: conformance.Model, Schema: []byte(conformance.Schema)})
				if tc.err != "" {
					var f *providers.Failure
					require.ErrorAs(t, err, &f)
					require.Equal(t, tc.err, f.Code)
					require.Zero(t, out.Kind)
					require.LessOrEqual(t, time.Since(start), 10*time.Second, "a question is not lingered over")
					return
				}
				require.NoError(t, err)
				require.Equal(t, tc.kind, out.Kind, "%+v", out.Failure)
				if tc.kind == providers.Completed {
					require.Equal(t, conformance.Output, string(out.Output)) //nolint:testifylint // to the byte
					require.Equal(t, 11, *out.Usage.InputTokens)
				} else {
					require.Equal(t, tc.code, out.Failure.Code)
				}
				require.Len(t, b.Server.Log(), 1)
				e := b.Server.Log()[0]
				require.Equal(t, "GET /v1/responses/resp_1", e.Method+" "+e.Path)
				require.Empty(t, e.Header.Values("Idempotency-Key"), "a question has no effects")
			})
		})
	}
}
