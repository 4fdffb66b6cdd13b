package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/docket-gateway/docket/internal/loopback"
	"github.com/docket-gateway/docket/internal/viewer"
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
// its viewer is what the authenticator gives for no credentials, if anything, and connection_init decides (Init). A next
// that serves WebSockets must therefore not take the context's viewer for granted.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return g.Open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := g.authenticate(r)
		switch {
		case err == nil:
			r = r.WithContext(NewContext(r.Context(), id))
		case isUpgrade(r) && len(r.Header.Values("Authorization")) == 0:
		case errors.Is(err, ErrUnauthenticated):
			challenge := "Bearer"
			if r.Header.Get("Authorization") != "" {
				challenge += ` error="invalid_token"` // of RFC 6750
			}
			w.Header().Set("WWW-Authenticate", challenge)
			refuse(w, r, http.StatusUnauthorized, CodeUnauthenticated, err.Error())
			return
		default: // whatever else it is, nobody knows who this is
			w.Header().Set("Retry-After", "5")
			refuse(w, r, http.StatusServiceUnavailable, CodeUnavailable, ErrUnavailable.Error())
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// Open is for what anybody may see: it refuses other sites and hosts as Handler does, and asks for no credentials.
func (g *Guard) Open(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.local && !loopback.Host(r.Host) {
			refuse(w, r, http.StatusForbidden, CodeForbidden, "this server answers on loopback names only")
			return
		}
		if g.crossSite(r) {
			refuse(w, r, http.StatusForbidden, CodeForbidden, "requests from another site are refused")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Operators is Handler for what only operators may see.
func (g *Guard) Operators(next http.Handler) http.Handler {
	return g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, ok := viewer.FromContext(r.Context()); !ok || !v.Operator {
			refuse(w, r, http.StatusForbidden, CodeForbidden, "this is for operators only")
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// CheckOrigin is for a WebSocket upgrader: it refuses handshakes that a browser makes for another origin. Clients that
// are no browsers send no Origin and pass.
func (g *Guard) CheckOrigin(r *http.Request) bool {
	return (!g.local || loopback.Host(r.Host)) && g.sameOrigin(r)
}

// Init authenticates a WebSocket by the payload of its connection_init: {"Authorization": "Bearer …"}, the key in any
// case. Without that key it is the handshake's identity, which ctx holds; without that it is ErrUnauthenticated. The
// context that it returns ends with the credentials, and with ctx.
func (g *Guard) Init(ctx context.Context, payload map[string]any) (context.Context, error) {
	id, err := g.fromPayload(ctx, payload)
	if err != nil {
		return nil, err
	}
	ctx, cancel := id.Bound(NewContext(ctx, id))
	context.AfterFunc(ctx, cancel)
	return ctx, nil
}

// Bound is Identity.Bound of the identity that ctx holds. A context without one ends with its parent.
func (g *Guard) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	id, _ := fromContext(ctx)
	return id.Bound(ctx)
}

func (g *Guard) fromPayload(ctx context.Context, payload map[string]any) (Identity, error) {
	var given []any
	for key, value := range payload {
		if strings.EqualFold(key, "Authorization") {
			given = append(given, value)
		}
	}
	if len(given) == 0 {
		if id, ok := fromContext(ctx); ok {
			return id, nil
		}
		return Identity{}, ErrUnauthenticated
	}
	text, ok := given[0].(string)
	// Present but empty is a broken client, not an anonymous one.
	if !ok || text == "" || len(given) > 1 {
		return Identity{}, ErrUnauthenticated
	}
	return g.authenticator.Authenticate(ctx, text)
}

func (g *Guard) authenticate(r *http.Request) (Identity, error) {
	values := r.Header.Values("Authorization")
	switch {
	case len(values) == 0:
		return g.authenticator.Authenticate(r.Context(), "")
	case len(values) > 1 || values[0] == "":
		return Identity{}, ErrUnauthenticated
	}
	return g.authenticator.Authenticate(r.Context(), values[0])
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
