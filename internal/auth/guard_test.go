package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/viewer"
)

// strict knows one token and nobody without one, as modes for production do.
type strict struct{}

func (strict) Authenticate(_ context.Context, authorization string) (Identity, error) {
	switch authorization {
	case "Bearer good":
		return Identity{Viewer: viewer.Viewer{Issuer: "strict", Subject: "s"}}, nil
	case "Bearer operator":
		return Identity{Viewer: viewer.Viewer{Issuer: "strict", Subject: "o", Operator: true}}, nil
	case "Bearer whoever":
		return Identity{}, fmt.Errorf("%w: dial 10.0.0.7", ErrUnavailable)
	case "Bearer broken":
		return Identity{}, errors.New("a failure of another kind")
	}
	return Identity{}, ErrUnauthenticated
}

type testBundle struct {
	called bool
	viewer viewer.Viewer
	ok     bool
}

// serve sends a request through g. headers are "Name: value" lines; Host is set apart.
func serve(t *testing.T, g *Guard, method, host string, headers ...string) (*httptest.ResponseRecorder, *testBundle) {
	t.Helper()
	b := &testBundle{}
	return serveBy(t, g.Handler, b, method, host, headers...), b
}

// serveBy sends it through one of the guard's handlers.
func serveBy(t *testing.T, guard func(http.Handler) http.Handler, b *testBundle, method, host string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	h := guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b.called = true
		b.viewer, b.ok = viewer.FromContext(r.Context())
	}))
	r := httptest.NewRequestWithContext(t.Context(), method, "http://"+host+"/graphql", nil)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const localHost = "127.0.0.1:8080"

var upgrade = []string{"Connection: Upgrade", "Upgrade: websocket"}

func TestGuardPutsViewerIntoContext(t *testing.T) {
	t.Parallel()
	_, b := serve(t, NewDevGuard(), http.MethodPost, localHost)
	require.Equal(t, testBundle{true, viewer.Viewer{Issuer: "dev", Subject: "local", Operator: true}, true}, *b)
	_, b = serve(t, NewDevGuard(), http.MethodPost, "localhost:8080", "Authorization: Bearer dev:alice")
	require.Equal(t, testBundle{true, viewer.Viewer{Issuer: "dev", Subject: "alice"}, true}, *b)
}

func TestGuardAnswers401InGraphQLShape(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string][]string{
		"Malformed":          {"Authorization: Basic YQ=="},
		"PresentButEmpty":    {"Authorization: "},
		"TwoHeaders":         {"Authorization: Bearer dev:alice", "Authorization: Bearer dev:bob"},
		"MalformedOnUpgrade": append([]string{"Authorization: nonsense"}, upgrade...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, b := serve(t, NewDevGuard(), http.MethodGet, localHost, headers...)
			require.False(t, b.called)
			require.Equal(t, http.StatusUnauthorized, w.Code)
			require.Regexp(t, `^Bearer( error="invalid_token")?$`, w.Header().Get("WWW-Authenticate"))
			requireCode(t, w, CodeUnauthenticated)
		})
	}
	w, _ := serve(t, NewGuard(strict{}), http.MethodPost, "docket.example", "Accept: application/graphql-response+json")
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Contains(t, w.Header().Get("Content-Type"), "application/graphql-response+json")
}

func requireCode(t *testing.T, w *httptest.ResponseRecorder, code string) {
	t.Helper()
	var body struct {
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body), w.Body.String())
	require.Len(t, body.Errors, 1)
	require.NotEmpty(t, body.Errors[0].Message)
	require.Equal(t, code, body.Errors[0].Extensions.Code)
}

func TestGuardRefusesOtherSites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, host string
		headers      []string
		refused      bool
	}{
		"NoBrowser":               {http.MethodPost, localHost, nil, false},
		"SameOrigin":              {http.MethodPost, localHost, []string{"Sec-Fetch-Site: same-origin", "Origin: http://" + localHost}, false},
		"TypedByUser":             {http.MethodGet, localHost, []string{"Sec-Fetch-Site: none"}, false},
		"CrossSitePost":           {http.MethodPost, localHost, []string{"Sec-Fetch-Site: cross-site"}, true},
		"OtherPortOfThisHost":     {http.MethodPost, localHost, []string{"Sec-Fetch-Site: same-site"}, true},
		"OldBrowserOtherOrigin":   {http.MethodPost, localHost, []string{"Origin: https://evil.example"}, true},
		"OldBrowserSameOrigin":    {http.MethodPost, localHost, []string{"Origin: http://" + localHost}, false},
		"NullOrigin":              {http.MethodPost, localHost, []string{"Origin: null"}, true},
		"CrossSiteGet":            {http.MethodGet, localHost, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, true},
		"CrossSiteEventSource":    {http.MethodGet, localHost, []string{"Origin: https://evil.example"}, true},
		"CrossSiteLink":           {http.MethodGet, localHost, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, false},
		"CrossSiteFrame":          {http.MethodGet, localHost, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, true},
		"CrossSiteFormNavigation": {http.MethodPost, localHost, []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, true},
		"RebindingPost":           {http.MethodPost, "evil.example:8080", []string{"Sec-Fetch-Site: same-origin", "Origin: http://evil.example:8080"}, true},
		"RebindingGet":            {http.MethodGet, "evil.example", nil, true},
		"CrossSiteUpgrade":        {http.MethodGet, localHost, append([]string{"Origin: https://evil.example"}, upgrade...), true},
		"UpgradeAsLink": {http.MethodGet, localHost,
			append([]string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, upgrade...), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, b := serve(t, NewDevGuard(), c.method, c.host, c.headers...)
			require.Equal(t, !c.refused, b.called)
			if c.refused {
				require.Equal(t, http.StatusForbidden, w.Code)
				requireCode(t, w, CodeForbidden)
			}
		})
	}
}

func TestGuardWithCredentialsAnswersAnyHost(t *testing.T) {
	t.Parallel()
	_, b := serve(t, NewGuard(strict{}), http.MethodPost, "docket.example", "Authorization: Bearer good")
	require.True(t, b.ok)
}

func TestGuardLetsUpgradesPassToConnectionInit(t *testing.T) {
	t.Parallel()
	_, b := serve(t, NewGuard(strict{}), http.MethodGet, "docket.example", upgrade...)
	require.True(t, b.called)
	require.False(t, b.ok, "nobody yet")
	w, b := serve(t, NewGuard(strict{}), http.MethodPost, "docket.example", upgrade...)
	require.False(t, b.called, "a POST is no handshake")
	require.Equal(t, http.StatusUnauthorized, w.Code)
	_, b = serve(t, NewDevGuard(), http.MethodGet, localHost, upgrade...)
	require.Equal(t, "local", b.viewer.Subject)
}

func TestInit(t *testing.T) {
	t.Parallel()
	local := viewer.Viewer{Issuer: "dev", Subject: "local", Operator: true}
	for name, c := range map[string]struct {
		payload  map[string]any
		fallback viewer.Viewer
		want     viewer.Viewer
	}{
		"NoPayload":    {nil, local, local},
		"OtherKeys":    {map[string]any{"x": 1}, local, local},
		"Credentials":  {map[string]any{"Authorization": "Bearer dev:alice"}, local, viewer.Viewer{Issuer: "dev", Subject: "alice"}},
		"LowerCaseKey": {map[string]any{"authorization": "Bearer dev:alice"}, viewer.Viewer{}, viewer.Viewer{Issuer: "dev", Subject: "alice"}},
		"Nobody":       {nil, viewer.Viewer{}, viewer.Viewer{}},
		"Malformed":    {map[string]any{"Authorization": "alice"}, local, viewer.Viewer{}},
		"Empty":        {map[string]any{"Authorization": ""}, local, viewer.Viewer{}},
		"Null":         {map[string]any{"Authorization": nil}, local, viewer.Viewer{}},
		"NotText":      {map[string]any{"Authorization": []any{"Bearer dev:alice"}}, local, viewer.Viewer{}},
		"Twice":        {map[string]any{"Authorization": "Bearer dev:alice", "authorization": "Bearer dev:alice"}, local, viewer.Viewer{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handshake := t.Context()
			if c.fallback != (viewer.Viewer{}) {
				handshake = NewContext(handshake, Identity{Viewer: c.fallback})
			}
			ctx, err := NewDevGuard().Init(handshake, c.payload)
			if c.want == (viewer.Viewer{}) {
				require.ErrorIs(t, err, ErrUnauthenticated)
				return
			}
			require.NoError(t, err)
			got, _ := viewer.FromContext(ctx)
			require.Equal(t, c.want, got)
		})
	}
}

func TestCheckOrigin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host, origin string
		want         bool
	}{
		"NoBrowser":   {localHost, "", true},
		"SameOrigin":  {localHost, "http://" + localHost, true},
		"OtherPort":   {localHost, "http://127.0.0.1:3000", false},
		"OtherName":   {localHost, "http://localhost:8080", false},
		"OtherSite":   {localHost, "https://evil.example", false},
		"NullOrigin":  {localHost, "null", false},
		"Rebinding":   {"evil.example:8080", "http://evil.example:8080", false},
		"RebindingNo": {"evil.example:8080", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.host+"/graphql", nil)
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			require.Equal(t, c.want, NewDevGuard().CheckOrigin(r))
			require.Equal(t, http.MethodGet, r.Method)
		})
	}
}

func TestGuardSaysWhenItCannotTell(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"whoever", "broken"} {
		w, b := serve(t, NewGuard(strict{}), http.MethodPost, "docket.example", "Authorization: Bearer "+token)
		require.False(t, b.called, "what cannot be checked is not let in")
		require.Equal(t, http.StatusServiceUnavailable, w.Code, "and not called wrong either")
		require.Equal(t, "5", w.Header().Get("Retry-After"))
		requireCode(t, w, CodeUnavailable)
		require.NotContains(t, w.Body.String(), "10.0.0.7")
		require.NotContains(t, w.Body.String(), "another kind")
	}
}

func TestGuardChallengesByTheRFC(t *testing.T) {
	t.Parallel()
	w, _ := serve(t, NewGuard(strict{}), http.MethodPost, "docket.example")
	require.Equal(t, "Bearer", w.Header().Get("WWW-Authenticate"))
	w, _ = serve(t, NewGuard(strict{}), http.MethodPost, "docket.example", "Authorization: Bearer bad")
	require.Equal(t, `Bearer error="invalid_token"`, w.Header().Get("WWW-Authenticate"))
}

func TestOpenAsksForNoCredentialsAndRefusesOtherSites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		guard   *Guard
		host    string
		headers []string
		passes  bool
	}{
		"Nobody":    {NewGuard(strict{}), "docket.example", nil, true},
		"Bad":       {NewGuard(strict{}), "docket.example", []string{"Authorization: Bearer bad"}, true},
		"OtherSite": {NewGuard(strict{}), "docket.example", []string{"Origin: https://evil.example"}, false},
		"Rebinding": {NewDevGuard(), "evil.example", nil, false},
	} {
		b := &testBundle{}
		w := serveBy(t, c.guard.Open, b, http.MethodGet, c.host, c.headers...)
		require.Equal(t, c.passes, b.called, name)
		require.False(t, b.ok, name)
		if !c.passes {
			require.Equal(t, http.StatusForbidden, w.Code, name)
		}
	}
}

func TestOperatorsLetsOperatorsIn(t *testing.T) {
	t.Parallel()
	for header, status := range map[string]int{"Bearer operator": http.StatusOK, "Bearer good": http.StatusForbidden, "Bearer bad": http.StatusUnauthorized} {
		b := &testBundle{}
		w := serveBy(t, NewGuard(strict{}).Operators, b, http.MethodGet, "docket.example", "Authorization: "+header)
		require.Equal(t, status, w.Code, header)
		require.Equal(t, status == http.StatusOK, b.called, header)
	}
	b := &testBundle{}
	serveBy(t, NewDevGuard().Operators, b, http.MethodGet, localHost)
	require.True(t, b.called, "the operator local")
}
