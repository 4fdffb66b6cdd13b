package acceptance

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/providers/providertest"
)

// The receiver is down when the job ends; the process that knows of it is killed; another one delivers.
func TestKilledBeforeTheWebhookWasTaken(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
			verifier, err := standardwebhooks.NewWebhook(secret)
			require.NoError(t, err)
			var up atomic.Bool
			ids := make(chan string, 100) // of verified deliveries; those that were refused begin with "no "
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				id := r.Header.Get("webhook-id")
				if !up.Load() {
					w.WriteHeader(http.StatusServiceUnavailable)
					ids <- "no " + id
					return
				}
				body, err := io.ReadAll(r.Body)
				if err != nil || verifier.Verify(body, r.Header) != nil {
					id = "not verified"
				}
				ids <- id
			}))
			t.Cleanup(receiver.Close)
			next := func() string { return await.Receive(t, "a delivery", ids) }

			f := startFake(t)
			f.Enqueue(providertest.OK())
			database := fresh(t)
			path := settings{database: database, url: f.url}.write(t)
			environ := []string{"DOCKET_WEBHOOK_SECRET=" + secret, "DOCKET_WEBHOOKS_ALLOW_PRIVATE=true"}
			p := run(t, t.TempDir(), environ, "serve", "--config", path)
			j := p.create(t, variables{"idempotencyKey": "k", "task": "echo", "input": variables{"text": "a"}, "callbackUrl": receiver.URL + "/hook"})
			first := next()
			db, _ := open(t, database)
			await.Until(t, "the refusal noted", func() bool { // else the entry is taken for a dead process's first, which takes minutes
				return query(t, db, "SELECT count(*) FROM river_job WHERE kind = 'webhook' AND state <> 'running'")[0][0] == "1"
			})
			p.kill(t)
			require.True(t, strings.HasPrefix(first, "no "+j.ID+"_"), first)

			up.Store(true)
			p = run(t, t.TempDir(), environ, "serve", "--config", path)
			require.Equal(t, strings.TrimPrefix(first, "no "), next())
			require.Equal(t, "SUCCEEDED", p.job(t, j.ID).State)
			require.NotContains(t, p.Log(), strings.TrimPrefix(secret, "whsec_"))
		})
	}
}
