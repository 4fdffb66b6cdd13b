package app

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/config"
)

const callbackSecret = "whsec_YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh"

// silent is the built-in configuration with targets that fall silent at once, and callbacks.
func silent(t *testing.T) (cfg *config.Config, environ []string) {
	t.Helper()
	environ = append(fresh(t), "CALLBACKS="+callbackSecret)
	path := write(t, t.TempDir(), "docket.yaml", `providers:
  - name: demo
    kind: demo
    callback_secret_env: CALLBACKS
    idle_timeout: 200ms
    linger: 0s
    models: [{name: inkjet, context_window: 8192, max_output_tokens: 2048}, {name: laser, context_window: 8192, max_output_tokens: 2048}, {name: fax}]
`)
	environ = append(environ, "DOCKET_CONFIG="+path)
	cfg, err := config.Load("", environ)
	require.NoError(t, err)
	return cfg, environ
}

// listed is what `docket attempts list` shows as JSON.
func listed(t *testing.T, environ []string) []struct{ ID, JobID, State string } {
	t.Helper()
	code, stdout, stderr := runs(t, environ, "attempts", "list", "--format", "json")
	require.Equal(t, 0, code, stderr)
	var doc struct {
		Attempts []struct{ ID, JobID, State string }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	return doc.Attempts
}

func TestAttemptsAreSettledBesideARunningGateway(t *testing.T) {
	t.Parallel()
	cfg, environ := silent(t)
	g := serve(t, cfg)
	first, second := job(t, g.addr, "one", "demo/fax"), job(t, g.addr, "two", "demo/fax")
	for _, id := range []string{first, second} {
		becomes(t, g.addr, id, `"state":"UNKNOWN"`)
	}
	require.Len(t, listed(t, environ), 2)
	_, page := get(t, g.addr, "/metrics")
	require.Contains(t, page, "docket_attempts_unknown{provider=\"demo\"} ")
	require.Contains(t, page, "docket_jobs_waiting 0")

	settle := func(more ...string) (int, string, string) {
		return runs(t, environ, append([]string{"attempts", "settle", "--provider", "demo", "--outcome", "failed", "--note", "outage"}, more...)...)
	}
	code, stdout, stderr := settle("--since", "1h", "--dry-run")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "2 UNKNOWN attempts of demo would become FAILED. Nothing was changed.")
	require.Len(t, listed(t, environ), 2)

	code, stdout, _ = settle("--until", "1h")
	require.Equal(t, 0, code)
	require.Contains(t, stdout, "0 UNKNOWN attempts of demo")

	for _, bad := range [][]string{{"--since", "yesterday"}, {"--note", ""}, {"--outcome", "succeeded"}, {"--provider", "demmo"}} {
		code, _, stderr = settle(bad...)
		require.Equal(t, 2, code, stderr)
	}

	code, stdout, stderr = settle("--since", "1h", "--operator", "olga")
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "2 UNKNOWN attempts of demo: 2 settled as FAILED, 0 settled by somebody else before, 0 failed.")
	require.Empty(t, listed(t, environ))
	for _, id := range []string{first, second} { // the gateway takes the next attempt up
		becomes(t, g.addr, id, `"state":"SUCCEEDED"`)
		text := query(t, g.addr, `query($id: ID!) { job(id: $id) { events { detail } } }`, map[string]any{"id": id})
		require.Contains(t, text, `"by":"olga"`)
		require.Contains(t, text, `"note":"outage"`)
	}
}

func TestCommandsThatLookCreateNoDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"attempts", "list"}, {"contracts", "status"},
		{"attempts", "settle", "--provider", "demo", "--outcome", "cancelled", "--note", "outage", "--dry-run"},
	} {
		code, stdout, stderr := runs(t, []string{"DOCKET_DATABASE=sqlite://" + filepath.Join(dir, "docket.db")}, args...)
		require.Equal(t, 2, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "docket migrate up")
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, files, args)
	}
}

// TestSettlingNeedsTheConfigurationOfThoseThatServe: what it does not know it would drop.
func TestSettlingNeedsTheConfigurationOfThoseThatServe(t *testing.T) {
	t.Parallel()
	cfg, environ := silent(t)
	g := serve(t, cfg)
	id := job(t, g.addr, "one", "demo/fax")
	becomes(t, g.addr, id, `"state":"UNKNOWN"`)
	for name, tc := range map[string]struct{ config, says string }{
		"NoProvider": {"providers: [{name: other, kind: demo, models: [{name: laser}]}]\n", `there is no provider "demo" in this configuration`},
		"NoFallback": {"providers: [{name: demo, kind: demo, models: [{name: fax}]}]\n", "job " + id + ` has the fallback "demo/`},
	} {
		lacking := append(slices.Clone(environ), "DOCKET_CONFIG="+write(t, t.TempDir(), "docket.yaml", tc.config))
		for _, more := range [][]string{{"--dry-run"}, nil} {
			code, stdout, stderr := runs(t, lacking, append([]string{"attempts", "settle", "--provider", "demo", "--outcome", "failed", "--note", "outage"}, more...)...)
			require.Equal(t, 2, code, name)
			require.Empty(t, stdout, name)
			require.Contains(t, stderr, tc.says, name)
		}
	}
	require.Len(t, listed(t, environ), 1)
	becomes(t, g.addr, id, `"state":"UNKNOWN"`)
}

func TestCallbackSettlesFromAnywhere(t *testing.T) {
	t.Parallel()
	cfg, environ := silent(t)
	g := serve(t, cfg)
	id := job(t, g.addr, "one", "demo/fax")
	becomes(t, g.addr, id, `"state":"UNKNOWN"`)
	a := listed(t, environ)[0]
	body := `{"attemptId":"` + a.ID + `","outcome":"succeeded","output":"{\"category\":\"billing\",\"priority\":\"high\",\"summary\":\"Charged twice.\"}"}`

	send := func(change func(r *http.Request)) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.addr+"/callbacks/demo", strings.NewReader(body))
		require.NoError(t, err)
		w, err := standardwebhooks.NewWebhook(callbackSecret)
		require.NoError(t, err)
		now := time.Now()
		signature, err := w.Sign("msg_1", now, []byte(body))
		require.NoError(t, err)
		r.Header.Set(standardwebhooks.HeaderWebhookID, "msg_1")
		r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
		r.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
		// As a provider behind a proxy sends it: the guard would refuse each of these.
		r.Host = "docket.example.com"
		r.Header.Set("Origin", "https://provider.example.com")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if change != nil {
			change(r)
		}
		return do(t, r)
	}
	status, text := send(func(r *http.Request) { r.Header.Set(standardwebhooks.HeaderWebhookID, "msg_2") })
	require.Equal(t, http.StatusUnauthorized, status, text)
	status, text = send(func(r *http.Request) { r.URL.Path = "/callbacks/openai" })
	require.Equal(t, http.StatusNotFound, status, text)
	status, text = send(func(r *http.Request) { // the guard stands before everything else
		r.URL.Path, r.Body = "/graphql", io.NopCloser(strings.NewReader(`{"query":"{ viewer { subject } }"}`))
		r.ContentLength = -1
	})
	require.Equal(t, http.StatusForbidden, status, text)

	status, text = send(nil)
	require.Equal(t, http.StatusOK, status, text)
	require.JSONEq(t, `{"landed":true,"attemptState":"SUCCEEDED","jobState":"SUCCEEDED"}`, text)
	status, text = send(nil)
	require.Equal(t, http.StatusOK, status, text)
	require.JSONEq(t, `{"landed":false,"attemptState":"SUCCEEDED","jobState":"SUCCEEDED"}`, text)
	becomes(t, g.addr, id, `"summary":"Charged twice."`)
	_, page := get(t, g.addr, "/metrics")
	require.Contains(t, page, `docket_attempts_settled_total{state="SUCCEEDED",via="callback"} 1`)
	require.NotContains(t, g.log.String(), "Charged twice")
}
