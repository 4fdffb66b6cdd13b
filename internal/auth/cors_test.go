package auth

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/loopback"
)

const app = "https://app.example.com"

// allowing serves a request through CORS and a guard that allow app.
func allowing(t *testing.T, method string, headers ...string) (w *httptest.ResponseRecorder, called bool) {
	t.Helper()
	g := NewGuard(strict{})
	require.NoError(t, g.Allow(app))
	h := CORS([]string{app}, g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true })))
	r := httptest.NewRequestWithContext(t.Context(), method, "https://docket.example/graphql", nil)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w, called
}

func TestPreflightsOfAnAllowedOriginPassWithoutCredentials(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"authorization", "content-type", "idempotency-key", "last-event-id", "traceparent",
		"authorization,content-type,idempotency-key,last-event-id,traceparent"} {
		w, called := allowing(t, http.MethodOptions, "Origin: "+app, "Sec-Fetch-Site: cross-site",
			"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: "+header)
		require.False(t, called)
		require.Equal(t, http.StatusNoContent, w.Code)
		require.Equal(t, app, w.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, header, w.Header().Get("Access-Control-Allow-Headers"))
		require.Equal(t, "7200", w.Header().Get("Access-Control-Max-Age"))
		require.Empty(t, w.Header().Get("Access-Control-Allow-Credentials"), "cookies are no part of it")
		for _, name := range []string{"Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"} {
			require.Contains(t, strings.Join(w.Header().Values("Vary"), ", "), name)
		}
	}
}

func TestPreflightsOfOthersAreAnsweredWithNothing(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string][]string{
		"another origin":        {"Origin: https://evil.example", "Access-Control-Request-Method: POST"},
		"a subdomain":           {"Origin: https://x.app.example.com", "Access-Control-Request-Method: POST"},
		"another scheme":        {"Origin: http://app.example.com", "Access-Control-Request-Method: POST"},
		"another port":          {"Origin: https://app.example.com:8443", "Access-Control-Request-Method: POST"},
		"an opaque origin":      {"Origin: null", "Access-Control-Request-Method: POST"},
		"a method that is none": {"Origin: " + app, "Access-Control-Request-Method: DELETE"},
		"another header":        {"Origin: " + app, "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: x-other"},
	} {
		w, called := allowing(t, http.MethodOptions, headers...)
		require.False(t, called, name)
		require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"), name)
	}
}

func TestRequestsOfAnAllowedOriginPassTheGuard(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		w, called := allowing(t, method, "Origin: "+app, "Sec-Fetch-Site: cross-site", "Authorization: Bearer good")
		require.True(t, called, method)
		require.Equal(t, app, w.Header().Get("Access-Control-Allow-Origin"))
		require.Contains(t, w.Header().Get("Access-Control-Expose-Headers"), "Retry-After")
		require.Contains(t, w.Header().Values("Vary"), "Origin")

		w, called = allowing(t, method, "Origin: "+app, "Sec-Fetch-Site: cross-site")
		require.False(t, called, "an origin is no credential")
		require.Equal(t, http.StatusUnauthorized, w.Code)
		require.Equal(t, app, w.Header().Get("Access-Control-Allow-Origin"), "or its page could not read why")

		w, called = allowing(t, method, "Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Authorization: Bearer good")
		require.False(t, called, method)
		require.Equal(t, http.StatusForbidden, w.Code)
		require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))

		// An image or a form of the allowed site sends no origin that could be compared.
		_, called = allowing(t, method, "Sec-Fetch-Site: cross-site", "Authorization: Bearer good")
		require.False(t, called, method)
	}
}

func TestHandshakesOfAnAllowedOriginPass(t *testing.T) {
	t.Parallel()
	g := NewDevGuard()
	require.NoError(t, g.Allow(app))
	for origin, want := range map[string]bool{app: true, "https://evil.example": false, "http://app.example.com": false, "null": false} {
		for _, host := range []string{"127.0.0.1:8080", "evil.example"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/graphql", nil)
			r.Header.Set("Origin", origin)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			require.Equal(t, want && loopback.Host(host), g.CheckOrigin(r), "%s at %s: dev mode stays on loopback", origin, host)
			w := httptest.NewRecorder()
			called := false
			g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true })).ServeHTTP(w, r)
			require.Equal(t, want && loopback.Host(host), called)
		}
	}
}

func TestWithoutAllowedOriginsNothingIsTold(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodOptions, "/graphql", nil)
	r.Header.Set("Origin", app)
	r.Header.Set("Access-Control-Request-Method", "POST")
	CORS(nil, NewGuard(strict{}).Handler(http.NotFoundHandler())).ServeHTTP(w, r)
	require.NotEqual(t, http.StatusNoContent, w.Code)
	require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
	require.Error(t, NewGuard(strict{}).Allow("app.example.com"), "no origin")
}
