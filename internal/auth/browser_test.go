package auth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/web/webtest"
)

// attack is a page that sends requests in all the ways that need no leave of the server.
const attack = `<!doctype html><title>t</title>
	<iframe name="f"></iframe><form method="post" action="HTTP/graphql?form" target="f"></form>
	<img src="HTTP/graphql?image"><iframe src="HTTP/graphql?frame"></iframe>
	<script>
		let open = 4;
		const ended = () => { if (--open === 0) document.title = "tried"; };
		const text = { mode: "no-cors", method: "POST", body: '{"query":"mutation{createJob}"}' };
		fetch("HTTP/graphql?post", text).then(ended, ended);
		fetch("HTTP/graphql?get", { mode: "no-cors" }).then(ended, ended);
		new WebSocket("WS/graphql?socket", "graphql-transport-ws").onerror = ended;
		new EventSource("HTTP/graphql?stream").onerror = ended;
		document.forms[0].submit();
	</script>`

// A real browser, on a page of another origin of this machine, tries what it can.
func TestBrowserOnAnotherOriginReachesNothing(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked, reached []string
	note := func(list *[]string, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, r.URL.RawQuery)
	}
	guarded := auth.NewDevGuard().Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { note(&reached, r) }))
	docket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(&asked, r)
		guarded.ServeHTTP(w, r)
	}))
	t.Cleanup(docket.Close)

	tries := []string{"post", "get", "socket", "stream", "image", "frame", "form"}
	page := strings.NewReplacer("HTTP", docket.URL, "WS", "ws"+strings.TrimPrefix(docket.URL, "http")).Replace(attack)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, page)
	}))
	t.Cleanup(elsewhere.Close)

	p := webtest.Open(t, elsewhere.URL+"/")
	p.Until(`document.title === "tried"`)
	await.Until(t, "the browser tries all of it", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(asked) >= len(tries)
	})
	mu.Lock()
	defer mu.Unlock()
	require.Subset(t, asked, tries, "the browser did not try everything, so nothing is proved")
	require.Empty(t, reached)
}
