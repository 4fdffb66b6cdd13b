package callbacks_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent/attempt"
	"github.com/docket-gateway/docket/internal/callbacks"
	"github.com/docket-gateway/docket/internal/jobs"
)

const (
	unauthenticated = `{"code":"UNAUTHENTICATED","message":"the signature is not valid"}`
	notSent         = `{"code":"NOT_FOUND","message":"no such attempt was sent to this provider"}`
)

func TestSettles(t *testing.T) {
	t.Parallel()

	t.Run("ClaimsTheJobByteForByte", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for _, a := range []string{b.unknown(t, "demo/a").ID, b.running(t, "demo/a/with/slashes").ID} {
				status, body := b.send(t, callback{body: `{"attemptId": "` + a + `", "outcome": "succeeded", "output": "{\"answer\": 9007199254740993.10}",
					"usage": {"inputTokens": 7, "outputTokens": 11}, "providerRequestId": "req-9", "error": null}`})
				require.Equal(t, http.StatusOK, status, body)
				require.JSONEq(t, `{"landed":true,"attemptState":"SUCCEEDED","jobState":"SUCCEEDED"}`, body)
				now := b.attempt(t, a)
				require.Contains(t, string(now.Edges.Job.Result), "9007199254740993.1")
				require.Equal(t, []int{7, 11}, []int{*now.InputTokens, *now.OutputTokens})
				require.Equal(t, "req-9", *now.ProviderRequestID)
			}
		})
	})

	t.Run("TakesNoMoreFromTheCacheThanThereWas", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.unknown(t, "demo/a")
			status, body := b.send(t, callback{body: `{"attemptId":"` + a.ID + `","outcome":"failed","error":{"code":"no","message":"No."},
				"usage": {"inputTokens": 7, "cachedInputTokens": 8, "outputTokens": 1}}`})
			require.Equal(t, http.StatusOK, status, body)
			require.Equal(t, 7, *b.attempt(t, a.ID).InputTokens)
			require.Nil(t, b.attempt(t, a.ID).CachedInputTokens)
		})
	})

	t.Run("RecordsTheProvidersFailure", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			a := b.unknown(t, "demo/a")
			status, body := b.send(t, callback{body: `{"attemptId":"` + a.ID + `","outcome":"failed","error":{"code":"content_filter","message":"No.\u0000"}}`})
			require.Equal(t, http.StatusOK, status, body)
			require.JSONEq(t, `{"landed":true,"attemptState":"FAILED","jobState":"FAILED"}`, body)
			require.Equal(t, "content_filter", *b.attempt(t, a.ID).ErrorCode)
		})
	})

	t.Run("NeverMakesInvalidOutputAResult", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, b *testBundle) {
			for _, output := range []string{`{"answer":true}`, `{"answer":"a","more":1}`, `{"answer":"a","answer":"b"}`, `{"answer":"a"} ` + "\x00", "", "Sure! {}"} {
				a := b.unknown(t, "demo/a")
				status, body := b.send(t, callback{body: succeeded(t, a.ID, output)})
				require.Equal(t, http.StatusOK, status, body)
				require.JSONEq(t, `{"landed":true,"attemptState":"FAILED","jobState":"FAILED"}`, body, output)
				require.Empty(t, b.attempt(t, a.ID).Edges.Job.Result)
			}
		})
	})
}

func TestReplayChangesNothing(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		a := b.unknown(t, "demo/a")
		c := callback{body: succeeded(t, a.ID, `{"answer":"one"}`), at: time.Now()}

		// The same message many times at once: one lands.
		landed := make(chan string, 8)
		var wg sync.WaitGroup
		for range cap(landed) {
			wg.Go(func() { _, body := b.send(t, c); landed <- body })
		}
		wg.Wait()
		close(landed)
		count := map[string]int{}
		for body := range landed {
			count[body]++
		}
		require.Equal(t, map[string]int{
			`{"landed":true,"attemptState":"SUCCEEDED","jobState":"SUCCEEDED"}`:  1,
			`{"landed":false,"attemptState":"SUCCEEDED","jobState":"SUCCEEDED"}`: 7,
		}, count)

		before := b.attempt(t, a.ID)
		for _, c := range []callback{c, {id: "msg_2", body: c.body}, {id: "msg_3", body: succeeded(t, a.ID, `{"answer":"two"}`)},
			{id: "msg_4", body: `{"attemptId":"` + a.ID + `","outcome":"failed","error":{"code":"NO","message":"no"}}`}} {
			status, body := b.send(t, c)
			require.Equal(t, http.StatusOK, status)
			require.JSONEq(t, `{"landed":false,"attemptState":"SUCCEEDED","jobState":"SUCCEEDED"}`, body)
		}
		after := b.attempt(t, a.ID)
		require.Equal(t, before.Edges.Job.LastEvent, after.Edges.Job.LastEvent)
		require.Equal(t, before.Edges.Job.Version, after.Edges.Job.Version)
		require.JSONEq(t, `{"answer":"one"}`, string(after.Edges.Job.Result))
	})
}

func TestRefusesWhatIsNotSigned(t *testing.T) {
	t.Parallel()
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	without := func(name string) func(*http.Request) { return func(r *http.Request) { r.Header.Del(name) } }
	b := setupSQLite(t)
	a := b.unknown(t, "demo/a")
	good := succeeded(t, a.ID, `{"answer":"forged"}`)
	for name, c := range map[string]callback{
		"another secret": {secret: "whsec_Y2NjY2NjY2NjY2NjY2NjY2NjY2NjY2Nj"},
		"no signature":   {change: without(standardwebhooks.HeaderWebhookSignature)},
		"no id":          {change: without(standardwebhooks.HeaderWebhookID)},
		"no time":        {change: without(standardwebhooks.HeaderWebhookTimestamp)},
		"another id":     {change: header(standardwebhooks.HeaderWebhookID, "msg_2")},
		"another time":   {change: header(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(time.Now().Unix()-1, 10)), at: time.Now().Add(time.Minute)},
		"no number":      {change: header(standardwebhooks.HeaderWebhookTimestamp, "now")},
		"an unknown scheme": {change: func(r *http.Request) {
			h := r.Header[http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookSignature)]
			h[0] = "v2" + h[0][2:]
		}},
		"an empty signature":   {change: header(standardwebhooks.HeaderWebhookSignature, "v1,")},
		"stale":                {at: time.Now().Add(-5*time.Minute - 2*time.Second)},
		"from the future":      {at: time.Now().Add(5*time.Minute + 10*time.Second)},
		"another body":         {change: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(good + " ")) }},
		"an operator's header": {secret: "whsec_Y2Nj", change: header("Authorization", "Bearer dev:olga:operator")},
	} {
		c.body = good
		status, body := b.send(t, c)
		require.Equal(t, http.StatusUnauthorized, status, name)
		require.JSONEq(t, unauthenticated, body, name)
	}
	require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a.ID).State)
	require.NotContains(t, b.log.String(), "forged")
	require.Contains(t, b.log.String(), "message timestamp too old")

	// Within the tolerance, with either secret, and with one signature of several.
	status, _ := b.send(t, callback{body: good, secret: older, at: time.Now().Add(-4 * time.Minute), change: func(r *http.Request) {
		h := r.Header[http.CanonicalHeaderKey(standardwebhooks.HeaderWebhookSignature)]
		h[0] = "v1a,abc v1,AAAA " + h[0]
	}})
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, attempt.StateSUCCEEDED, b.attempt(t, a.ID).State)
}

func TestFindsOnlyWhatWasSentToThisProvider(t *testing.T) {
	t.Parallel()
	b := setupSQLite(t)
	const output = `{"answer":"a"}`
	mine, other, waiting := b.unknown(t, "demo/a"), b.unknown(t, "quiet/a"), b.starting(t, "demo/a")
	for name, tc := range map[string]struct {
		callback
		body string
	}{
		"another provider's":   {callback{body: succeeded(t, other.ID, output)}, notSent},
		"not sent yet":         {callback{body: succeeded(t, waiting.ID, output)}, notSent},
		"nobody's":             {callback{body: succeeded(t, "att_01m8mdzdh2e4ttxht2cps3ahha", output)}, notSent},
		"no secret":            {callback{path: "/callbacks/quiet", body: succeeded(t, other.ID, output)}, `{"code":"NOT_FOUND","message":"there are no callbacks here"}`},
		"no such provider":     {callback{path: "/callbacks/Demo", body: succeeded(t, mine.ID, output)}, `{"code":"NOT_FOUND","message":"there are no callbacks here"}`},
		"404 before signature": {callback{path: "/callbacks/none", secret: "whsec_Y2Nj"}, `{"code":"NOT_FOUND","message":"there are no callbacks here"}`},
	} {
		status, body := b.send(t, tc.callback)
		require.Equal(t, http.StatusNotFound, status, name)
		require.Equal(t, tc.body, body, name)
	}
	for _, a := range []string{mine.ID, other.ID} {
		require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a).State)
	}
}

func TestRefusesWhatIsNotACallback(t *testing.T) {
	t.Parallel()
	b := setupSQLite(t)
	a := b.unknown(t, "demo/a").ID
	for name, tc := range map[string]struct{ body, problem string }{
		"nothing":               {``, "not valid JSON"},
		"no JSON":               {`attemptId=` + a, "not valid JSON"},
		"a key twice":           {`{"attemptId":"` + a + `","outcome":"succeeded","output":"{}","output":"{}"}`, "not valid JSON"},
		"a key twice by escape": {`{"attemptId":"` + a + `","outcome":"succeeded","output":"{}","\u006futput":"{}"}`, "not valid JSON"},
		"a lone surrogate":      {`{"attemptId":"` + a + `","outcome":"succeeded","output":"\ud800"}`, "not valid JSON"},
		"invalid UTF-8":         {`{"attemptId":"` + a + `","outcome":"succeeded","output":"` + "\xff" + `"}`, "not valid JSON"},
		"two texts":             {`{"attemptId":"` + a + `","outcome":"succeeded","output":"{}"}{}`, "not valid JSON"},
		"a list":                {`[]`, ""},
		"a key in another case": {`{"attemptID":"` + a + `","outcome":"succeeded","output":"{}"}`, "attemptI"},
		"an unknown key":        {`{"attemptId":"` + a + `","outcome":"succeeded","output":"{}","retry":true}`, "retry"},
		"no attempt":            {`{"outcome":"succeeded","output":"{}"}`, "attemptId"},
		"another kind of id":    {`{"attemptId":"job_01m8mdzdh2e4ttxht2cps3ahha","outcome":"succeeded","output":"{}"}`, "/attemptId"},
		"no outcome":            {`{"attemptId":"` + a + `","output":"{}"}`, "outcome"},
		"another outcome":       {`{"attemptId":"` + a + `","outcome":"unknown","error":{"code":"A","message":"b"}}`, "/outcome"},
		"output is an object":   {`{"attemptId":"` + a + `","outcome":"succeeded","output":{"answer":"a"}}`, "/output"},
		"success without":       {`{"attemptId":"` + a + `","outcome":"succeeded"}`, "output"},
		"success with error":    {`{"attemptId":"` + a + `","outcome":"succeeded","output":"{}","error":{"code":"A","message":"b"}}`, "/error"},
		"success with null":     {`{"attemptId":"` + a + `","outcome":"succeeded","output":null}`, "/output"},
		"failure without":       {`{"attemptId":"` + a + `","outcome":"failed"}`, "error"},
		"failure with null":     {`{"attemptId":"` + a + `","outcome":"failed","error":null}`, "/error"},
		"failure with output":   {`{"attemptId":"` + a + `","outcome":"failed","output":"{}","error":{"code":"A","message":"b"}}`, "/output"},
		"no code":               {`{"attemptId":"` + a + `","outcome":"failed","error":{"message":"b"}}`, "/error"},
		"a code with spaces":    {`{"attemptId":"` + a + `","outcome":"failed","error":{"code":"A B","message":"b"}}`, "/error/code"},
		"fewer than no tokens":  {`{"attemptId":"` + a + `","outcome":"succeeded","output":"{}","usage":{"inputTokens":-1}}`, "/usage/inputTokens"},
		"too many tokens":       {`{"attemptId":"` + a + `","outcome":"succeeded","output":"{}","usage":{"inputTokens":9999999999}}`, "/usage/inputTokens"},
		"tokens with a point":   {`{"attemptId":"` + a + `","outcome":"succeeded","output":"{}","usage":{"outputTokens":1.0}}`, "whole number"},
	} {
		status, body := b.send(t, callback{body: tc.body})
		require.Equal(t, http.StatusBadRequest, status, name)
		require.Contains(t, body, `{"code":"INVALID_CALLBACK","message":"`, name)
		require.Contains(t, body, tc.problem, name)
	}
	status, body := b.send(t, callback{body: succeeded(t, a, strings.Repeat("a", limit))})
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.JSONEq(t, `{"code":"TOO_LARGE","message":"a callback has at most 10000 bytes"}`, body)
	status, _ = b.send(t, callback{body: succeeded(t, a, "{}"), change: func(r *http.Request) { r.Method = http.MethodGet }})
	require.Equal(t, http.StatusMethodNotAllowed, status)
	require.Equal(t, attempt.StateUNKNOWN, b.attempt(t, a).State)
}

type broken struct{}

func (broken) SettleReported(context.Context, string, string, jobs.Outcome) (jobs.Verdict, error) {
	return jobs.Verdict{}, errors.New("no database")
}

func TestAsksAgainWhenItCouldNotBeRecorded(t *testing.T) {
	t.Parallel()
	b := setupSQLite(t)
	status, body := send(t, b.serve(t, broken{}), callback{body: succeeded(t, "att_01m8mdzdh2e4ttxht2cps3ahha", `{"answer":"hush"}`)})
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.JSONEq(t, `{"code":"UNAVAILABLE","message":"the callback was not recorded; send it again"}`, body)
	require.Contains(t, b.log.String(), "no database")
	require.NotContains(t, b.log.String(), "hush")
}

func TestNewRefusesSecretsThatEverybodyKnows(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "whsec_", "whsec_not base64"} {
		_, err := callbacks.New(broken{}, callbacks.Options{Secrets: map[string][]string{"demo": {bad}}, Logger: slog.New(slog.DiscardHandler)})
		require.ErrorContains(t, err, "demo", bad)
		require.NotContains(t, err.Error(), "not base64 ")
	}
}
