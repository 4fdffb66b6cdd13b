package oidc_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/await"
	"github.com/docket-gateway/docket/internal/logtest"
	"github.com/docket-gateway/docket/internal/oidc"
	"github.com/docket-gateway/docket/internal/viewer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTakesTokensOfTheProvider(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ec, ed := ecKey(t), edKey(t)
	p.publish("rsa", rsaKey())
	p.publish("ec", ec)
	p.publish("ed", ed)
	v := verifier(t, p.config(), oidc.Options{})
	for name, token := range map[string]string{
		"RS256":             sign(t, jwt.SigningMethodRS256, rsaKey(), "rsa", p.claims()),
		"ES256":             sign(t, jwt.SigningMethodES256, ec, "ec", p.claims()),
		"EdDSA":             sign(t, jwt.SigningMethodEdDSA, ed, "ed", p.claims()),
		"WithoutKeyID":      sign(t, jwt.SigningMethodES256, ec, "", p.claims()),
		"SeveralAudiences":  sign(t, jwt.SigningMethodES256, ec, "ec", p.claims(with("aud", []string{"x", audience}))),
		"WithoutNotBefore":  sign(t, jwt.SigningMethodES256, ec, "ec", p.claims(without("nbf"))),
		"FractionOfASecond": sign(t, jwt.SigningMethodES256, ec, "ec", p.claims(with("exp", float64(time.Now().Add(time.Hour).Unix())+0.5))),
	} {
		got, err := v.Verify(t.Context(), token)
		require.NoError(t, err, name)
		require.Equal(t, viewer.Viewer{Issuer: p.url, Subject: "alice"}, got.Viewer, name)
		require.WithinDuration(t, time.Now().Add(time.Hour), got.Expires, 10*time.Second, name)
		require.Nil(t, got.Watch, name)
	}
}

func TestRefusesEveryOtherToken(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ec, stranger := ecKey(t), ecKey(t)
	p.publish("rsa", rsaKey())
	p.publish("ec", ec)
	p.publish("enc", rsaKey(), func(m *jwkset.JWKMetadataOptions) { m.USE = jwkset.UseEnc })
	p.publish("rs512", rsaKey(), func(m *jwkset.JWKMetadataOptions) { m.ALG = jwkset.AlgRS512 })
	v := verifier(t, p.config(), oidc.Options{})
	public, err := x509.MarshalPKIXPublicKey(rsaKey().Public())
	require.NoError(t, err)
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	good := func(change ...func(jwt.MapClaims)) string {
		return sign(t, jwt.SigningMethodES256, ec, "ec", p.claims(change...))
	}
	parts := strings.Split(good(), ".")
	other := strings.Split(good(with("sub", "mallory")), ".")
	for name, c := range map[string]struct{ token, says string }{
		"AlgorithmNotListed":  {sign(t, jwt.SigningMethodRS384, rsaKey(), "rsa", p.claims()), "signature is not valid, or its algorithm"},
		"None":                {sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "rsa", p.claims()), "its algorithm is not allowed"},
		"HS256ByThePublicKey": {sign(t, jwt.SigningMethodHS256, publicPEM, "rsa", p.claims()), "its algorithm is not allowed"},
		"HS256ByItsDER":       {sign(t, jwt.SigningMethodHS256, public, "", p.claims()), "its algorithm is not allowed"},
		"KeyOfAnotherKind":    {sign(t, jwt.SigningMethodES256, ec, "rsa", p.claims()), "signature"},
		"KeyForEncryption":    {sign(t, jwt.SigningMethodRS256, rsaKey(), "enc", p.claims()), "signature"},
		"KeyForAnotherUse":    {sign(t, jwt.SigningMethodRS256, rsaKey(), "rs512", p.claims()), "signature"},
		"KeyOfAStranger":      {sign(t, jwt.SigningMethodES256, stranger, "ec", p.claims()), "signature"},
		"AnyKeyOfAStranger":   {sign(t, jwt.SigningMethodES256, stranger, "", p.claims()), "signature"},
		"UnknownKey":          {sign(t, jwt.SigningMethodES256, stranger, "nope", p.claims()), "publishes no such key"},
		"OtherClaims":         {parts[0] + "." + other[1] + "." + parts[2], "signature"},
		"NoSignature":         {parts[0] + "." + parts[1] + ".", "signature"},
		"TwoParts":            {parts[0] + "." + parts[1], "malformed"},
		"FourParts":           {good() + ".x", "malformed"},
		"NoToken":             {"nonsense", "malformed"},
		"Dots":                {"..", "malformed"},
		"BitsAtTheEnd":        {good() + "=", "malformed"},
		"CriticalHeader":      {sign(t, jwt.SigningMethodES256, ec, "ec", p.claims(), "crit", "exp"), "critical header"},
		"OtherAudience":       {good(with("aud", "somebody-else")), "another audience"},
		"PartOfTheAudience":   {good(with("aud", audience+"2")), "another audience"},
		"NoAudience":          {good(without("aud")), "iss, aud and exp"},
		"EmptyAudience":       {good(with("aud", []string{})), "iss, aud and exp"},
		"Expired":             {good(with("exp", time.Now().Add(-time.Second).Unix())), "have expired"},
		"NoExpiry":            {good(without("exp")), "iss, aud and exp"},
		"ExpiryIsNoTime":      {good(with("exp", "tomorrow")), "unauthenticated"},
		"NotYet":              {good(with("nbf", time.Now().Add(time.Minute).Unix())), "not valid yet"},
		"OtherIssuer":         {good(with("iss", "https://evil.example")), "another issuer"},
		"AlmostTheIssuer":     {good(with("iss", p.url+"/")), "another issuer"},
		"NoIssuer":            {good(without("iss")), "another issuer"},
		"NoSubject":           {good(without("sub")), "subject"},
		"EmptySubject":        {good(with("sub", "")), "subject"},
		"SubjectIsNoText":     {good(with("sub", 7)), "subject"},
		"LongSubject":         {good(with("sub", strings.Repeat("s", 256))), "subject"},
		"UnprintableSubject":  {good(with("sub", "al\x00ice")), "subject"},
		"SpacesAroundSubject": {good(with("sub", " alice")), "subject"},
	} {
		got, err := v.Verify(t.Context(), c.token)
		require.ErrorIs(t, err, auth.ErrUnauthenticated, name)
		require.ErrorContains(t, err, c.says, name)
		require.Zero(t, got, name)
		for part := range strings.SplitSeq(c.token, ".") {
			if len(part) > 3 {
				require.NotContains(t, err.Error(), part, name)
			}
		}
		for _, inside := range []string{"alice", "mallory", "evil", "somebody-else", "nope", "tomorrow"} {
			require.NotContains(t, err.Error(), inside, name)
		}
	}
	require.LessOrEqual(t, p.fetched(), 2, "the first fetch, and one for the unknown key")
}

func TestOperatorsByClaim(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ec := ecKey(t)
	p.publish("ec", ec)
	for name, c := range map[string]struct {
		claim  oidc.Claim
		claims func(jwt.MapClaims)
		want   bool
	}{
		"InAList":        {oidc.Claim{Name: "roles", Value: "op"}, with("roles", []string{"a", "op"}), true},
		"NotInTheList":   {oidc.Claim{Name: "roles", Value: "op"}, with("roles", []string{"operator", "a op"}), false},
		"Text":           {oidc.Claim{Name: "role", Value: "op"}, with("role", "op"), true},
		"WordOfAnyText":  {oidc.Claim{Name: "name", Value: "op"}, with("name", "not op"), false},
		"WordOfTheScope": {oidc.Claim{Name: "scope", Value: "op"}, with("scope", "openid op"), true},
		"Boolean":        {oidc.Claim{Name: "https://x.example/op", Value: "true"}, with("https://x.example/op", true), true},
		"False":          {oidc.Claim{Name: "op", Value: "true"}, with("op", false), false},
		"Nested":         {oidc.Claim{Name: "/realm_access/roles", Value: "op"}, with("realm_access", map[string]any{"roles": []string{"op"}}), true},
		"EscapedPointer": {oidc.Claim{Name: "/a~1b/c~0d", Value: "op"}, with("a/b", map[string]any{"c~d": "op"}), true},
		"NotAnObject":    {oidc.Claim{Name: "/realm_access/roles", Value: "op"}, with("realm_access", "op"), false},
		"Missing":        {oidc.Claim{Name: "roles", Value: "op"}, without("roles"), false},
		"Null":           {oidc.Claim{Name: "roles", Value: "op"}, with("roles", nil), false},
		"Number":         {oidc.Claim{Name: "roles", Value: "1"}, with("roles", 1), false},
		"NoClaim":        {oidc.Claim{}, with("", ""), false},
	} {
		config := p.config()
		config.Operator = c.claim
		got, err := verifier(t, config, oidc.Options{}).Verify(t.Context(), sign(t, jwt.SigningMethodES256, ec, "ec", p.claims(c.claims)))
		require.NoError(t, err, name)
		require.Equal(t, c.want, got.Viewer.Operator, name)
	}
}

func TestLeewayIsForBothEnds(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ec := ecKey(t)
	p.publish("ec", ec)
	config := p.config()
	config.Leeway = time.Minute
	v := verifier(t, config, oidc.Options{})
	expired := time.Now().Add(-30 * time.Second).Truncate(time.Second)
	got, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, ec, "ec", p.claims(with("exp", expired.Unix()), with("nbf", time.Now().Add(30*time.Second).Unix()))))
	require.NoError(t, err)
	require.Equal(t, expired.Add(time.Minute).Unix(), got.Expires.Unix(), "an open connection ends when a new one is refused")
	_, err = v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, ec, "ec", p.claims(with("exp", time.Now().Add(-2*time.Minute).Unix()))))
	require.ErrorIs(t, err, auth.ErrExpired)
}

func TestFindsARotatedKeyAndForgetsTheOldOne(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	old, next := ecKey(t), ecKey(t)
	p.publish("old", old)
	v := verifier(t, p.config(), oidc.Options{UnknownEvery: time.Millisecond})
	before := sign(t, jwt.SigningMethodES256, old, "old", p.claims())
	_, err := v.Verify(t.Context(), before)
	require.NoError(t, err)
	p.set(func() { p.jwks = nil })
	p.publish("next", next)
	after := sign(t, jwt.SigningMethodES256, next, "next", p.claims())
	fetched := p.fetched()
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() { _, errs[i] = v.Verify(t.Context(), after) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.LessOrEqual(t, p.fetched(), fetched+2, "who asks at once shares a fetch")
	_, err = v.Verify(t.Context(), before)
	require.ErrorIs(t, err, auth.ErrUnauthenticated, "the provider has withdrawn it")
}

func TestAWithdrawnKeyIsForgottenWithoutAnyUnknownOne(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ec := ecKey(t)
	p.publish("ec", ec)
	v := verifier(t, p.config(), oidc.Options{RefreshEvery: 20 * time.Millisecond})
	token := sign(t, jwt.SigningMethodES256, ec, "ec", p.claims())
	_, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	p.set(func() { p.jwks = nil })
	await.Until(t, "the token is refused", func() bool { _, err := v.Verify(t.Context(), token); return err != nil })
}

func TestAFloodOfUnknownKeysAsksTheProviderOnce(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ec := ecKey(t)
	p.publish("ec", ec)
	v := verifier(t, p.config(), oidc.Options{Timeout: 200 * time.Millisecond})
	fetched := p.fetched()
	for i := range 50 {
		_, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, ec, strings.Repeat("x", i+1), p.claims()))
		require.Error(t, err)
	}
	require.Equal(t, fetched+1, p.fetched())
	_, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, ec, "ec", p.claims()))
	require.NoError(t, err, "known keys go on")
}

func TestTokensOfOthersCostTheProviderNothing(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ec := ecKey(t)
	p.publish("ec", ec)
	v := verifier(t, p.config(), oidc.Options{UnknownEvery: time.Nanosecond})
	fetched := p.fetched()
	_, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, ec, "theirs", p.claims(with("iss", "https://elsewhere.example"))))
	require.ErrorIs(t, err, auth.ErrUnauthenticated)
	_, err = v.Verify(t.Context(), sign(t, jwt.SigningMethodHS256, []byte("k"), "theirs", p.claims()))
	require.ErrorIs(t, err, auth.ErrUnauthenticated)
	require.Equal(t, fetched, p.fetched())
}

func TestAClientThatGoesAwayDoesNotEndTheFetch(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	old, next := ecKey(t), ecKey(t)
	p.publish("old", old)
	v := verifier(t, p.config(), oidc.Options{})
	p.publish("next", next)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := v.Verify(gone, sign(t, jwt.SigningMethodES256, next, "next", p.claims()))
	require.NoError(t, err, "its fetch is everybody's")
}

func TestStartsWithoutTheProviderAndRecoversByItself(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ec := ecKey(t)
	p.publish("ec", ec)
	p.set(func() { p.down = true })
	log := &logtest.Buffer{}
	v := verifier(t, p.config(), oidc.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	token := sign(t, jwt.SigningMethodES256, ec, "ec", p.claims())
	_, err := v.Verify(t.Context(), token)
	require.ErrorIs(t, err, auth.ErrUnavailable)
	require.NotErrorIs(t, err, auth.ErrUnauthenticated, "the token may be good")
	require.ErrorContains(t, err, "keys are not known yet")
	require.Contains(t, log.String(), "the status is 503")
	p.set(func() { p.down = false })
	await.Until(t, "the token is taken", func() bool { _, err := v.Verify(t.Context(), token); return err == nil })
}

func TestKnownKeysOutliveTheProviderAndUnknownOnesWait(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ec, next := ecKey(t), ecKey(t)
	p.publish("ec", ec)
	v := verifier(t, p.config(), oidc.Options{UnknownEvery: time.Millisecond})
	p.publish("next", next)
	p.set(func() { p.down = true })
	after := sign(t, jwt.SigningMethodES256, next, "next", p.claims())
	_, err := v.Verify(t.Context(), after)
	require.ErrorIs(t, err, auth.ErrUnavailable, "nobody can say that there is no such key")
	_, err = v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, ec, "ec", p.claims()))
	require.NoError(t, err)
	p.set(func() { p.down = false })
	await.Until(t, "the token is taken", func() bool { _, err := v.Verify(t.Context(), after); return err == nil })
}

func TestDoesNotBelieveAnyAnswer(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(p *provider, c *oidc.Config){
		"DocumentOfAnotherIssuer": func(p *provider, _ *oidc.Config) { p.issuer = "https://evil.example" },
		"Redirect": func(p *provider, _ *oidc.Config) {
			good := jwkset.JWKSMarshal{Keys: p.jwks}
			p.answer = func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "" {
					http.Redirect(w, r, "/keys?elsewhere", http.StatusFound)
					return
				}
				_ = json.NewEncoder(w).Encode(good)
			}
		},
		"KeysInTheClear": func(p *provider, _ *oidc.Config) { p.keysAt = "http://docket.invalid/keys" },
		"Endless": func(p *provider, _ *oidc.Config) {
			p.answer = func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"x": "` + strings.Repeat("x", 2<<20) + `", "keys": []}`))
			}
		},
		"NoJSON": func(p *provider, _ *oidc.Config) {
			p.answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			ec := ecKey(t)
			p.publish("ec", ec)
			c := p.config()
			p.set(func() { prepare(p, &c) })
			log := &logtest.Buffer{}
			v := verifier(t, c, oidc.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
			_, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodES256, ec, "ec", p.claims()))
			require.ErrorIs(t, err, auth.ErrUnavailable)
			if name == "KeysInTheClear" {
				require.Contains(t, log.String(), oidc.ErrInsecure.Error())
			}
		})
	}
}

func TestKeysAtAnAddressOfTheirOwn(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ec := ecKey(t)
	p.publish("ec", ec)
	c := p.config()
	c.Issuer, c.JWKSURL = "https://issuer.example", p.url+"/keys"
	got, err := verifier(t, c, oidc.Options{}).Verify(t.Context(), sign(t, jwt.SigningMethodES256, ec, "ec", p.claims(with("iss", c.Issuer))))
	require.NoError(t, err)
	require.Equal(t, c.Issuer, got.Viewer.Issuer)
}

func TestNewRefusesWhatWouldLetOthersIn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*oidc.Config){
		"NoAudience":    func(c *oidc.Config) { c.Audience = nil },
		"EmptyAudience": func(c *oidc.Config) { c.Audience = []string{""} },
		"NoIssuer":      func(c *oidc.Config) { c.Issuer = "" },
		"NoAlgorithm":   func(c *oidc.Config) { c.Algorithms = nil },
		"None":          func(c *oidc.Config) { c.Algorithms = []string{"RS256", "none"} },
		"HS256":         func(c *oidc.Config) { c.Algorithms = []string{"HS256"} },
		"Unknown":       func(c *oidc.Config) { c.Algorithms = []string{"RS255"} },
	} {
		c := oidc.Config{Issuer: "https://i.example", Audience: []string{"a"}, Algorithms: []string{"RS256"}}
		change(&c)
		_, err := oidc.New(c, oidc.Options{})
		require.Error(t, err, name)
	}
}
