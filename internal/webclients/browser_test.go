package webclients

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/web/webtest"
)

// page submits one intent when it is loaded and shows what it hears.
const page = `<!doctype html><meta charset="utf-8"><title>t</title><pre></pre>
<script type="importmap">{"imports": {"graphql-ws/client": "/graphql-ws/client.js"}}</script>
<script type="module">
import { Client } from "/client/index.js";
const say = (text) => document.querySelector("pre").append(text + "\n");
const client = new Client({ url: "/graphql", retry: { baseMs: 20, capMs: 200 } });
const intent = client.intent("triage:browser", { task: "triage", input: { text: "I was charged twice." }, target: "demo/fax", fallbacks: [] });
try {
  const result = await intent.submit();
  say(result.__typename + " replayed=" + result.replayed + " kept=" + localStorage.length);
  const numbers = [];
  for await (const event of intent.watch()) {
    numbers.push(event.number);
    if (event.attempt) say(event.attempt.target + " " + event.to + " " + event.attempt.id);
  }
  say("numbers=" + numbers + " kept=" + localStorage.length);
} catch (error) {
  say("error: " + error);
}
</script>`

// requireBrowserKeepsIntent has a browser lose the answer to createJob and load the page anew, and it is the same job; its
// connections are cut while it watches, and it misses nothing; and it is the same job once more when it is over.
func requireBrowserKeepsIntent(t *testing.T, w *workshop, gateway string) {
	t.Helper()
	site, err := startSite(t, w, gateway)
	require.NoError(t, err)

	site.losing.Store(true)
	p := webtest.Open(t, site.url)
	<-site.lost
	site.losing.Store(false)
	p.Do(chromedp.Navigate(site.url))
	p.Until(`document.body.innerText.includes("demo/fax RUNNING")`)
	require.Contains(t, p.Text("pre"), "CreateJobSuccess replayed=true kept=1")

	_, after, _ := strings.Cut(p.Text("pre"), "demo/fax RUNNING ")
	attempt, _, _ := strings.Cut(after, "\n")
	job := post(t, gateway, `query($id: ID!) { node(id: $id) { ... on Attempt { job { id } } } }`, map[string]any{"id": attempt})
	site.cut()
	post(t, gateway, `mutation($i: CancelAttemptInput!) { cancelAttempt(input: $i) { __typename } }`,
		map[string]any{"i": map[string]any{"attemptId": attempt}})
	post(t, gateway, `mutation($i: StartAttemptInput!) { startAttempt(input: $i) { __typename } }`,
		map[string]any{"i": map[string]any{"jobId": jobID(t, job), "target": "demo/laser"}})
	p.Until(`document.body.innerText.includes("numbers=")`)
	require.Contains(t, p.Text("pre"), "numbers=1,2,3,4,5,6,7,8,9,10,11,12 kept=1")

	p.Do(chromedp.Navigate(site.url))
	p.Until(`document.body.innerText.includes("numbers=")`)
	require.Contains(t, p.Text("pre"), "CreateJobSuccess replayed=true", "a page that is loaded again makes no job, also when it is over")
	require.Contains(t, p.Text("pre"), attempt)
}

func jobID(t *testing.T, answer []byte) string {
	t.Helper()
	var out struct {
		Data struct {
			Node struct{ Job struct{ ID string } }
		}
	}
	require.NoError(t, json.Unmarshal(answer, &out))
	require.NotEmpty(t, out.Data.Node.Job.ID, "%s", answer)
	return out.Data.Node.Job.ID
}

// post asks the gateway as the operator that a page without credentials is too.
func post(t *testing.T, gateway, query string, variables map[string]any) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, gateway, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	var answer bytes.Buffer
	_, err = answer.ReadFrom(res.Body)
	require.NoError(t, err)
	require.NotContains(t, answer.String(), `"errors"`)
	return answer.Bytes()
}

// site is a web site with the page, the client's modules and the gateway behind one address.
type site struct {
	*cuttable

	url    string
	losing atomic.Bool   // answers to createJob never arrive
	lost   chan struct{} // is closed when the first one has not
}

func startSite(t *testing.T, w *workshop, gateway string) (*site, error) {
	t.Helper()
	target, err := url.Parse(gateway)
	if err != nil {
		return nil, err
	}
	s := &site{lost: make(chan struct{})}
	once := sync.OnceFunc(func() { close(s.lost) })
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host // and the page's own Host stays, to be its origin
		},
		ModifyResponse: func(r *http.Response) error {
			if s.losing.Load() && r.Request.Header.Get("Idempotency-Key") != "" {
				once()
				panic(http.ErrAbortHandler)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	mux := http.NewServeMux()
	mux.Handle("/graphql", proxy)
	mux.Handle("GET /client/", http.StripPrefix("/client/", http.FileServer(http.Dir(filepath.Join(w.own, "dist")))))
	mux.Handle("GET /graphql-ws/", http.StripPrefix("/graphql-ws/",
		http.FileServer(http.Dir(filepath.Join(w.own, "node_modules", "graphql-ws", "dist")))))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(page))
	})
	server := httptest.NewUnstartedServer(mux)
	s.cuttable = &cuttable{Listener: server.Listener}
	server.Listener = s.cuttable
	server.Start()
	t.Cleanup(func() {
		s.cut() // a socket is none of the server's connections
		server.Close()
	})
	s.url = server.URL + "/"
	return s, nil
}

// cuttable is a listener whose connections can be cut.
type cuttable struct {
	net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

// Accept implements net.Listener.
func (c *cuttable) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
	}
	return conn, err
}

func (c *cuttable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}
