package oidc_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/oidc"
)

const audience = "docket"

// rsaKey takes a while to make, so the tests share it.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// provider is an OpenID provider, as far as a verifier sees it.
type provider struct {
	t      *testing.T
	url    string
	issuer string // that its document names
	keysAt string // that too

	mu      sync.Mutex
	jwks    []jwkset.JWKMarshal
	down    bool
	fetches int
	answer  http.HandlerFunc // in place of the keys, if it is set
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.issuer, "jwks_uri": p.keysAt})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fetches++
		switch {
		case p.down:
			http.Error(w, "down", http.StatusServiceUnavailable)
		case p.answer != nil:
			p.answer(w, r)
		default:
			_ = json.NewEncoder(w).Encode(jwkset.JWKSMarshal{Keys: p.jwks})
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	p.url, p.issuer, p.keysAt = s.URL, s.URL, s.URL+"/keys"
	return p
}

func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *provider) fetched() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

// publish adds the public half of a key.
func (p *provider) publish(kid string, key crypto.Signer, change ...func(*jwkset.JWKMetadataOptions)) {
	p.t.Helper()
	m := jwkset.JWKMetadataOptions{KID: kid, USE: jwkset.UseSig}
	for _, c := range change {
		c(&m)
	}
	jwk, err := jwkset.NewJWKFromKey(key.Public(), jwkset.JWKOptions{Metadata: m})
	require.NoError(p.t, err)
	p.set(func() { p.jwks = append(p.jwks, jwk.Marshal()) })
}

func (p *provider) config() oidc.Config {
	return oidc.Config{
		Issuer: p.url, Audience: []string{"other", audience}, Algorithms: []string{"RS256", "ES256", "EdDSA"},
		Operator: oidc.Claim{Name: "roles", Value: "docket-operator"},
	}
}

// quick makes waits short. UnknownEvery is long: a test that wants a second fetch says so.
func quick(o oidc.Options) oidc.Options {
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Second
	}
	if o.RefreshEvery == 0 {
		o.RefreshEvery = time.Hour
	}
	if o.UnknownEvery == 0 {
		o.UnknownEvery = time.Hour
	}
	o.RetryAtMost = 10 * time.Millisecond
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// verifier runs one until the test ends, and waits for its first try.
func verifier(t *testing.T, c oidc.Config, o oidc.Options) *oidc.Verifier {
	t.Helper()
	v, err := oidc.New(c, quick(o))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { v.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	<-v.Tried()
	return v
}

// claims are those of a good token, changed.
func (p *provider) claims(change ...func(jwt.MapClaims)) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": p.url, "sub": "alice", "aud": audience, "exp": time.Now().Add(time.Hour).Unix(), "nbf": time.Now().Add(-time.Minute).Unix(),
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func with(name string, value any) func(jwt.MapClaims) {
	return func(c jwt.MapClaims) { c[name] = value }
}
func without(name string) func(jwt.MapClaims) { return func(c jwt.MapClaims) { delete(c, name) } }

// sign makes a token; kid is left out if it is empty.
func sign(t *testing.T, method jwt.SigningMethod, key any, kid string, claims jwt.MapClaims, header ...string) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	for i := 0; i+1 < len(header); i += 2 {
		token.Header[header[i]] = header[i+1]
	}
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return text
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func edKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return key
}
