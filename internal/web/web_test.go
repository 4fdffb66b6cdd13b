package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func get(t *testing.T, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	h, err := Handler(Options{})
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestServesPageAndWhatItLoads(t *testing.T) {
	t.Parallel()
	page := get(t, http.MethodGet, "/")
	require.Equal(t, http.StatusOK, page.Code)
	require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
	links := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
	require.Len(t, links, 3)
	for _, link := range links {
		require.Equal(t, http.StatusOK, get(t, http.MethodGet, link[1]).Code, link[1])
	}
	for _, worker := range []string{"editor", "json", "graphql"} {
		w := get(t, http.MethodGet, "/assets/"+worker+".worker.js")
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, "text/javascript; charset=utf-8", w.Header().Get("Content-Type"))
	}
}

func TestEveryAnswerIsUnderThePolicy(t *testing.T) {
	t.Parallel()
	// A worker has its own policy, from its own answer.
	for _, path := range []string{"/", "/assets/main.js", "/assets/graphql.worker.js"} {
		h := get(t, http.MethodGet, path).Header()
		csp := h.Get("Content-Security-Policy")
		require.True(t, strings.HasPrefix(csp, "default-src 'self';"), csp)
		require.NotContains(t, csp, "unsafe-eval")
		require.NotRegexp(t, `script-src|https?:|\*`, csp)
		require.Contains(t, csp, "frame-ancestors 'none'")
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
	}
}

func TestRefusesOtherPathsAndMethods(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/index.html", "/assets", "/assets/", "/assets/none.js", "/dist/index.html", "/graphql", "/assets/../web.go"} {
		require.Equal(t, http.StatusNotFound, get(t, http.MethodGet, path).Code, path)
	}
	require.Equal(t, http.StatusMethodNotAllowed, get(t, http.MethodPost, "/").Code)
	require.Empty(t, get(t, http.MethodHead, "/").Body.String())
}

func TestCompressesForThoseWhoAccept(t *testing.T) {
	t.Parallel()
	plain := get(t, http.MethodGet, "/assets/main.js")
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	for accept, want := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "deflate": false, "gzip;q=0": false, "": false} {
		w := get(t, http.MethodGet, "/assets/main.js", "Accept-Encoding: "+accept)
		require.Equal(t, want, w.Header().Get("Content-Encoding") == "gzip", accept)
		require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
		if want {
			require.NotEqual(t, plain.Header().Get("ETag"), w.Header().Get("ETag"))
			zr, err := gzip.NewReader(w.Body)
			require.NoError(t, err)
			body, err := io.ReadAll(zr)
			require.NoError(t, err)
			require.True(t, bytes.Equal(plain.Body.Bytes(), body))
		}
	}
}

func TestAnswersNotModified(t *testing.T) {
	t.Parallel()
	etag := get(t, http.MethodGet, "/").Header().Get("ETag")
	w := get(t, http.MethodGet, "/", "If-None-Match: "+etag)
	require.Equal(t, http.StatusNotModified, w.Code)
	require.Empty(t, w.Body.String())
}

func TestTellsThePageHowClientsSayWhoTheyAre(t *testing.T) {
	t.Parallel()
	pages := map[bool]*httptest.ResponseRecorder{}
	for token, mode := range map[bool]string{false: "dev", true: "token"} {
		h, err := Handler(Options{Token: token})
		require.NoError(t, err)
		pages[token] = httptest.NewRecorder()
		h.ServeHTTP(pages[token], httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		require.Equal(t, []string{mode}, regexp.MustCompile(`<meta name="docket-auth" content="(\w+)">`).FindStringSubmatch(pages[token].Body.String())[1:])
	}
	require.NotEqual(t, pages[false].Header().Get("ETag"), pages[true].Header().Get("ETag"), "a browser would keep the other page")
}
