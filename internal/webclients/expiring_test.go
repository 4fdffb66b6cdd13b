package webclients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/internal/apikeys"
	"github.com/docket-gateway/docket/internal/app"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/web/webtest"
)

// keyLife is how long the credentials of a stream are good.
const keyLife = time.Second

// Credentials that expire end a stream so that what is documented for clients comes back by itself, with fresh ones, and goes
// on after the last event that it has.
func TestStreamsComeBackWithFreshCredentials(t *testing.T) {
	t.Parallel()
	w := open(t)
	o := startOffice(t)

	t.Run("GraphqlSSE", func(t *testing.T) {
		t.Parallel()
		var report struct{ Events int }
		out := w.run(t, w.clients, nil, "expiring-sse.mjs", o.url+"/graphql", o.job(t, "sse"))
		require.NoError(t, json.Unmarshal([]byte(out), &report), out)
		require.GreaterOrEqual(t, report.Events, 4)
	})

	t.Run("EventSource", func(t *testing.T) {
		t.Parallel()
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "live-updates.md"))
		require.NoError(t, err)
		sample := regexp.MustCompile("(?s)\n  ```js\n(.*?)  ```\n").FindStringSubmatch(string(text))
		require.NotNil(t, sample)
		id := o.job(t, "eventsource")
		query := url.Values{"query": {`subscription { jobEvents(jobId: "` + id + `") { number } }`}}
		o.page.Store(fmt.Sprintf(`<!doctype html><meta charset="utf-8"><title>t</title><pre></pre><script>
const url = "/session/graphql?%s";
const say = (text) => document.querySelector("pre").append(text + "\n");
const show = ({ data, errors }) => say(errors ? JSON.stringify(errors) : "event " + data.jobEvents.number);
%s
source.addEventListener("complete", () => say("complete, and " + (source.readyState === EventSource.CLOSED ? "closed" : "open")));
</script>`, query.Encode(), sample[1]))
		p := webtest.Open(t, o.url+"/")
		await.Until(t, "the page comes back with new credentials", func() bool { return o.sessions.Load() >= 2 })
		o.post(t, `mutation($input: CancelJobInput!) { cancelJob(input: $input) { __typename } }`, map[string]any{"jobId": id})
		p.Until(`document.body.innerText.includes("complete")`)
		shown := strings.Fields(strings.ReplaceAll(p.Text("pre"), "event ", ""))
		numbers := shown[:len(shown)-3]
		require.GreaterOrEqual(t, len(numbers), 4)
		for i, n := range numbers {
			require.Equal(t, fmt.Sprint(i+1), n, "none lost, none twice, in order")
		}
		require.Equal(t, []string{"complete,", "and", "closed"}, shown[len(numbers):])
	})
}

// office is a gateway behind a site that hands out keys: by GET /key, and to each request under /session, as a site does that
// keeps its users' tokens behind a cookie.
type office struct {
	t        *testing.T
	keys     *ent.Client
	url      string
	page     atomic.Value // a string
	sessions atomic.Int64 // requests under /session
}

func startOffice(t *testing.T) *office {
	t.Helper()
	dsn := databases.DSN(t)
	cfg := config.Default()
	cfg.Listen, cfg.Database = "127.0.0.1:0", config.NewDSN(dsn)
	cfg.Tasks = []string{filepath.Join("..", "..", "contracts", "tasks")}
	cfg.Auth = config.Auth{Mode: config.AuthModeToken, APIKeys: true}
	g, err := app.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	s, err := store.Open(t.Context(), dsn)
	require.NoError(t, err)
	o := &office{t: t, keys: s.Client()}
	target := &url.URL{Scheme: "http", Host: g.Addr()}
	mux := http.NewServeMux()
	mux.Handle("/graphql", httputil.NewSingleHostReverseProxy(target))
	mux.Handle("/session/", http.StripPrefix("/session", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", "Bearer "+o.key(keyLife))
		o.sessions.Add(1)
	}}))
	mux.HandleFunc("GET /key", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(o.key(keyLife))) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(o.page.Load().(string)))
	})
	site := httptest.NewServer(mux)
	o.url = site.URL
	t.Cleanup(func() {
		site.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 50*time.Millisecond) // what is under way is cut off
		defer cancel()
		require.NoError(t, g.Stop(ctx))
		require.NoError(t, s.Close())
	})
	return o
}

func (o *office) key(life time.Duration) string {
	key, _, err := apikeys.Create(o.t.Context(), o.keys, apikeys.NewKey{
		Issuer: "https://issuer.example", Subject: "alice", By: "tester", Expires: time.Now().Add(life),
	})
	if err != nil {
		panic(err)
	}
	return key
}

// job makes one that stays open: the simulated fax acknowledges and says no more.
func (o *office) job(t *testing.T, key string) (id string) {
	t.Helper()
	var out struct {
		Data struct {
			CreateJob struct{ Job struct{ ID string } }
		}
	}
	text := o.post(t, `mutation($input: CreateJobInput!) { createJob(input: $input) { ... on CreateJobSuccess { job { id } } } }`,
		map[string]any{"idempotencyKey": key, "task": "triage", "input": map[string]any{"text": "I was charged twice."}, "target": "demo/fax", "fallbacks": []string{}})
	require.NoError(t, json.Unmarshal(text, &out))
	require.NotEmpty(t, out.Data.CreateJob.Job.ID, "%s", text)
	return out.Data.CreateJob.Job.ID
}

func (o *office) post(t *testing.T, query string, input map[string]any) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": map[string]any{"input": input}})
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.url+"/graphql", bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+o.key(time.Minute))
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	var answer bytes.Buffer
	_, err = answer.ReadFrom(res.Body)
	require.NoError(t, err)
	require.NotContains(t, answer.String(), `"errors"`)
	return answer.Bytes()
}
