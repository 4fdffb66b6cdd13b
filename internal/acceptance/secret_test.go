package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/app"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/providertest"
)

// The key is one that an adapter takes for a harmless word: only looking for it finds it.
const (
	canaryKey      = "sk-canary-4f9c2d71e6b8"
	canaryCallback = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5LQ=="
)

// tells records what a request's key was and answers with the behaviour that is made of it, the key in every header.
func tells(f func(x *providertest.Exchange, key string)) providertest.Behaviour {
	return func(x *providertest.Exchange) { f(x, strings.TrimPrefix(x.Header("Authorization"), "Bearer ")) }
}

func echoesBody(status int, body string) providertest.Behaviour {
	return tells(func(x *providertest.Exchange, key string) {
		x.Respond(status, "application/json", strings.ReplaceAll(body, "KEY", key), "X-Request-Id", key, "Retry-After", key)
	})
}

func completion(content, id, finish string) string {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"id":%q,"object":"chat.completion","choices":[{"index":0,"message":{"content":%s},"finish_reason":%q}],
		"usage":{"prompt_tokens":1000,"completion_tokens":7}}`, id, text, finish)
}

// echoes are a provider's ways to say our key back. The first is good all the same.
func echoes() (list []providertest.Behaviour, codes []string) {
	for _, e := range []struct {
		b    providertest.Behaviour
		code string
	}{
		{echoesBody(200, completion(`{"text": "fine"}`, "KEY", "stop")), ""},
		{echoesBody(401, `{"error":{"message":"Incorrect API key: Bearer KEY","type":"KEY","code":"KEY"}}`), providers.CodeUnauthorized},
		{echoesBody(500, `{"error":{"message":"KEY","code":"KEY"}}`), providers.CodeProviderError},
		{echoesBody(302, `KEY`), providers.CodeRedirected},
		{echoesBody(200, `{"error":{"message":"KEY","type":"KEY"}}`), providers.CodeProviderError},
		{echoesBody(200, `KEY`), providers.CodeMalformedAnswer},
		{echoesBody(200, completion(`{"text": "it is KEY"}`, "KEY", "stop")), providers.CodeSecretEchoed},
		{echoesBody(200, completion(`{"text": "it is \u0073k-canary-4f9c2d71e6b8"}`, "KEY", "stop")), providers.CodeSecretEchoed},
		{echoesBody(200, completion(`{"text": "a", "KEY": 1}`, "KEY", "stop")), providers.CodeSecretEchoed},
		{echoesBody(200, completion(`KEY`, "KEY", "stop")), providers.CodeSecretEchoed},
		{echoesBody(200, completion(`{"text": "a"}`, "KEY", "KEY")), providers.CodeMalformedAnswer},
		{tells(func(x *providertest.Exchange, key string) {
			x.Raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Request-Id: " + key + "\r\n\r\n" +
				"data: {\"id\":\"" + key + "\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + key + "\"}}]}\n\ndata: " +
				strings.ReplaceAll(`{"error":{"message":"KEY","code":"KEY"}}`, "KEY", key) + "\n\n")
		}), providers.CodeProviderError},
	} {
		list, codes = append(list, e.b), append(codes, e.code)
	}
	return list, codes
}

// TestNoSecretLeaves: a provider that says our key back, in every place, and everything that this leaves anywhere.
func TestNoSecretLeaves(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, f := fresh(t), startFake(t)
			path := filepath.Join(t.TempDir(), "docket.yaml")
			require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
listen: 127.0.0.1:0
database: %q
tasks: [%q]
lease: 2m
log: {level: debug, format: json}
providers:
  - {name: fake, kind: openai-compatible, base_url: %s, api_key_env: CANARY, callback_secret_env: CANARY_CALLBACK, ack_timeout: 2s,
     currency: EUR, models: [{name: primary, price_per_million: {input: 0.15, output: 0.60}}, {name: second}]}
`, database, writeTasks(t), f.url), 0o600))
			environ := []string{"CANARY=" + canaryKey, "CANARY_CALLBACK=" + canaryCallback}
			p := run(t, t.TempDir(), environ, "serve", "--config", path)
			var said strings.Builder // all that clients get to read
			// A marker that must be found wherever the canary must not.
			intent := func(key string) variables {
				return variables{"idempotencyKey": key, "task": "strict", "input": variables{"text": "marker-" + key}, "fallbacks": []string{}}
			}
			read := func(jobID string) {
				for _, q := range []string{jobQuery, eventsQuery} {
					said.WriteString(p.post(t, q, variables{"id": jobID}).text)
				}
				w := p.watch(t, "SSE", jobID)
				fmt.Fprintf(&said, "%+v", rest[event](t, w.events, "jobEvents"))
				fmt.Fprintf(&said, "%+v", rest[attempt](t, w.attempts, "attemptUpdated"))
			}

			list, codes := echoes()
			for i, b := range list {
				f.Enqueue(b)
				j := p.create(t, intent(fmt.Sprintf("echo-%d", i)))
				state := "FAILED"
				if codes[i] == "" {
					state = "SUCCEEDED"
				}
				j = p.becomes(t, j.ID, state)
				require.Equal(t, codes[i], j.last().code(), "%d: %+v", i, j.last().Error)
				read(j.ID)
			}
			require.Equal(t, "[redacted]", p.job(t, p.jobByKey(t, "echo-0").ID).last().ProviderRequestID)
			usage := field[struct {
				Usage struct{ Cost, Currency string }
			}](t, p.client, "jobByKey", `{jobByKey(idempotencyKey: "echo-0"){usage{cost currency}}}`, nil)
			require.Equal(t, "0.0001542", usage.Usage.Cost)
			require.Equal(t, "EUR", usage.Usage.Currency)

			unknown := p.unknownEchoes(t, f, intent, read)
			p.reportEchoes(t, unknown)
			read(unknown.ID)

			// A contract run, with the environment of an operator.
			f.OnModel("second", list[1])
			var out, errs bytes.Buffer
			code := app.Main([]string{"contracts", "run", "--config", path, "--task", "strict", "--target", second, "--format", "json"}, environ, &out, &errs)
			require.Equal(t, 1, code, errs.String())
			require.Contains(t, out.String(), providers.CodeUnauthorized)
			said.WriteString(out.String() + errs.String())
			said.WriteString(p.post(t, `{targets(task: "strict"){id contract{state reasons}}}`, nil).text)
			page, err := p.http.Get(p.url + "/metrics") //nolint:noctx // a look
			require.NoError(t, err)
			metrics, err := io.ReadAll(page.Body)
			require.NoError(t, err)
			require.NoError(t, page.Body.Close())
			require.Contains(t, string(metrics), "docket_attempts_settled_total")
			said.Write(metrics)

			p.terminate(t)
			p.exits(t)
			require.Contains(t, said.String(), "marker-echo-3")
			require.Contains(t, p.Log(), "docket is ready")
			for _, secret := range []string{canaryKey, strings.TrimPrefix(canaryCallback, "whsec_")} {
				require.NotContains(t, said.String(), secret)
				require.NotContains(t, p.Log(), secret)
				requireAbsent(t, database, secret, "marker-echo-3")
			}
			// It was sent, or nothing of this proves anything.
			require.NotEmpty(t, f.sent())
		})
	}
}

// unknownEchoes leaves a job with an UNKNOWN attempt behind, whose acknowledgement held the key.
func (p *process) unknownEchoes(t *testing.T, f *fake, intent func(string) variables, read func(string)) job {
	t.Helper()
	f.Enqueue(tells(func(x *providertest.Exchange, key string) {
		x.Raw("HTTP/1.1 200 OK\r\nX-Request-Id: " + key + "\r\nContent-Length: 100000\r\n\r\n" + completion("", key, key)[:60])
	}))
	j := p.create(t, intent("unknown"))
	a := p.attemptBecomes(t, j.ID, 1, "UNKNOWN")
	require.Equal(t, "[redacted]", a.ProviderRequestID)

	f.Enqueue(providertest.Hang())
	silent := p.create(t, intent("silent"))
	b := p.attemptBecomes(t, silent.ID, 1, "UNKNOWN")
	p.cancelAttempt(t, b.ID)
	p.cancelJob(t, silent.ID)
	read(silent.ID)
	return p.job(t, j.ID)
}

// reportEchoes lets the provider settle the job's attempt by a callback that quotes both secrets.
func (p *process) reportEchoes(t *testing.T, j job) {
	t.Helper()
	w, err := standardwebhooks.NewWebhook(canaryCallback)
	require.NoError(t, err)
	both := canaryKey + "/" + canaryCallback
	text, err := json.Marshal(map[string]any{"attemptId": j.last().ID, "outcome": "failed", "providerRequestId": both,
		"error": map[string]string{"code": both, "message": "no: " + both}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/callbacks/fake", bytes.NewReader(text))
	require.NoError(t, err)
	now := time.Now()
	signature, err := w.Sign("msg_1", now, text)
	require.NoError(t, err)
	r.Header.Set(standardwebhooks.HeaderWebhookID, "msg_1")
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, fmt.Sprint(now.Unix()))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	res, err := p.http.Do(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
	failed := p.becomes(t, j.ID, "FAILED")
	require.Equal(t, "no: [redacted]/[redacted]", failed.last().Error.Message)
}
