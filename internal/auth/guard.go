package auth

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/docket-gateway/docket/internal/viewer"
)

// Codes of the errors that a Guard answers with.
const (
	CodeUnauthenticated = "UNAUTHENTICATED" // 401
	CodeForbidden       = "FORBIDDEN"       // 403: from another site, or to another host
)

// Guard stands before the GraphQL endpoint: it refuses requests that a browser sends for another site, authenticates
// the others and puts the viewer into their context.
type Guard struct {
	authenticator Authenticator
	// local is set where a request without credentials has authority, so that the network is all that protects it.
	local  bool
	origin *http.CrossOriginProtection
}

// NewGuard guards by a's credentials alone.
func NewGuard(a Authenticator) *Guard {
	return &Guard{authenticator: a, origin: http.NewCrossOriginProtection()}
}

// NewDevGuard guards dev mode: as NewGuard, and only requests to a loopback Host pass.
func NewDevGuard() *Guard {
	g := NewGuard(Dev{})
	g.local = true
	return g
}

// Handler puts the guard before next. A WebSocket handshake without a header passes, because a browser cannot set one:
// its viewer is what the authenticator gives for no credentials, if anything, and connection_init decides
// (FromInitPayload). A next that serves WebSockets must therefore not take the context's viewer for granted.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.local && !loopbackHost(r.Host) {
			refuse(w, r, http.StatusForbidden, CodeForbidden, "this server answers on loopback names only")
			return
		}
		if g.crossSite(r) {
			refuse(w, r, http.StatusForbidden, CodeForbidden, "requests from another site are refused")
			return
		}
		v, err := g.authenticate(r)
		switch {
		case err == nil:
			r = r.WithContext(viewer.NewContext(r.Context(), v))
		case isUpgrade(r) && len(r.Header.Values("Authorization")) == 0:
		default:
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, http.StatusUnauthorized, CodeUnauthenticated, err.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}

// CheckOrigin is for a WebSocket upgrader: it refuses handshakes that a browser makes for another origin. Clients that
// are no browsers send no Origin and pass.
func (g *Guard) CheckOrigin(r *http.Request) bool {
	return (!g.local || loopbackHost(r.Host)) && g.sameOrigin(r)
}

// FromInitPayload authenticates a WebSocket by the payload of its connection_init: {"Authorization": "Bearer …"}, the key
// in any case. Without that key it is fallback, the handshake's viewer; a zero fallback is ErrUnauthenticated.
func (g *Guard) FromInitPayload(payload map[string]any, fallback viewer.Viewer) (viewer.Viewer, error) {
	var given []any
	for key, value := range payload {
		if strings.EqualFold(key, "Authorization") {
			given = append(given, value)
		}
	}
	if len(given) == 0 {
		if fallback == (viewer.Viewer{}) {
			return viewer.Viewer{}, ErrUnauthenticated
		}
		return fallback, nil
	}
	text, ok := given[0].(string)
	// Present but empty is a broken client, not an anonymous one.
	if !ok || text == "" || len(given) > 1 {
		return viewer.Viewer{}, ErrUnauthenticated
	}
	return g.authenticator.Authenticate(text)
}

func (g *Guard) authenticate(r *http.Request) (viewer.Viewer, error) {
	values := r.Header.Values("Authorization")
	switch {
	case len(values) == 0:
		return g.authenticator.Authenticate("")
	case len(values) > 1 || values[0] == "":
		return viewer.Viewer{}, ErrUnauthenticated
	}
	return g.authenticator.Authenticate(values[0])
}

// crossSite reports whether a browser sends r for another origin. Unlike http.CrossOriginProtection alone it covers GET
// too, where queries, streams and WebSocket handshakes begin; only following a link to here stays allowed.
func (g *Guard) crossSite(r *http.Request) bool {
	link := r.Method == http.MethodGet && !isUpgrade(r) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !link && !g.sameOrigin(r)
}

func (g *Guard) sameOrigin(r *http.Request) bool {
	// The library lets GET pass unseen.
	asPost := *r
	asPost.Method = http.MethodPost
	return g.origin.Check(&asPost) == nil
}

func isUpgrade(r *http.Request) bool {
	for _, field := range r.Header.Values("Upgrade") {
		for protocol := range strings.SplitSeq(field, ",") {
			if strings.EqualFold(strings.TrimSpace(protocol), "websocket") {
				return r.Method == http.MethodGet
			}
		}
	}
	return false
}

// refuse answers in GraphQL's own shape, so that a client has one way to read errors.
func refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	type graphqlError struct {
		Message    string            `json:"message"`
		Extensions map[string]string `json:"extensions"`
	}
	body, err := json.Marshal(map[string][]graphqlError{
		"errors": {{Message: message, Extensions: map[string]string{"code": code}}},
	})
	if err != nil {
		http.Error(w, code, status)
		return
	}
	contentType := "application/json; charset=utf-8"
	if strings.Contains(r.Header.Get("Accept"), "application/graphql-response+json") {
		contentType = "application/graphql-response+json; charset=utf-8"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
