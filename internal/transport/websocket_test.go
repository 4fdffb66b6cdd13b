package transport

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHandshakesOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	h := New(nil, Options{CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == "" }})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/graphql", nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "WebSocket")
	r.Header.Set("Origin", "https://evil.example")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), CodeForbidden)
}
