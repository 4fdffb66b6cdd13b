package webtest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

func TestPageRunsOperationWithoutAnyOtherHost(t *testing.T) {
	t.Parallel()
	s, server := newStub(t)
	require.Equal(t, stubJob, RunsOperation(t, server.URL))
	require.Contains(t, s.operationsRun(), "IntrospectionQuery")
	require.Contains(t, s.operationsRun(), "CreateJob")
}

func TestPageWatchesSubscriptionByWebSocket(t *testing.T) {
	t.Parallel()
	s, server := newStub(t)
	RunsSubscription(t, server.URL, stubJob, `"state": "SUCCEEDED"`)
	require.Contains(t, s.operationsRun(), "WatchAttempts")
}

// What a visit must notice is shown to it here, or a calm visit would prove nothing.
func TestVisitNoticesProblems(t *testing.T) {
	t.Parallel()
	const policy = "default-src 'self' 'unsafe-inline' https://elsewhere.example"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", policy)
		_, _ = w.Write([]byte(`<title>t</title><img src="https://elsewhere.example/a.png"><script src="/missing.js"></script><script>
			const done = (id) => document.body.append(id);
			console.error("said on the console");
			setTimeout(() => { throw new Error("thrown"); });
			try { eval("1"); } catch { }
			fetch("http://forbidden.example/").catch(() => setTimeout(() => done("all tried"), 0));
		</script>`))
	}))
	t.Cleanup(server.Close)
	p := Open(t, server.URL+"/")
	p.Until(`document.body.innerText.includes("all tried") && document.images[0].complete`)
	// The events of one page come in order: those of before have come when this one has.
	p.Do(chromedp.Evaluate[chromedp.Void](`console.error("last"), {}`))
	problems := strings.Join(p.Problems(), "\n")
	for _, want := range []string{
		"request to another host: https://elsewhere.example/a.png", "ERR_NAME_NOT_RESOLVED", "404", "said on the console", "thrown",
		"'script-src' was not explicitly set", "forbidden.example", "last",
	} {
		require.Contains(t, problems, want)
	}
}
