package acceptance

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/app"
)

// issuer is an OpenID provider with one key.
type issuer struct {
	url string
	key *ecdsa.PrivateKey
}

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	jwk, err := jwkset.NewJWKFromKey(key.Public(), jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: "k", USE: jwkset.UseSig}})
	require.NoError(t, err)
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.url, "jwks_uri": i.url + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jwkset.JWKSMarshal{Keys: []jwkset.JWKMarshal{jwk.Marshal()}})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	i.url = s.URL
	return i
}

// token is a new one for each sign-in.
func (i *issuer) token(t *testing.T, subject string, life time.Duration, roles ...string) string {
	t.Helper()
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"iss": i.url, "sub": subject, "aud": "docket", "exp": float64(now.Add(life).UnixMilli()) / 1000, "jti": fmt.Sprint(now.UnixNano()), "roles": roles,
	})
	token.Header["kid"] = "k"
	text, err := token.SignedString(i.key)
	require.NoError(t, err)
	return text
}

// docket runs one of the program's commands beside the gateway.
func (g *gateway) docket(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	var out, errs bytes.Buffer
	require.Zero(t, app.Main(append(args, "--config", g.config), nil, &out, &errs), errs.String())
	return strings.TrimSpace(out.String())
}

// The key of an intent belongs to the user: one owner, by whatever credential.
func TestIdentityInTokenMode(t *testing.T) {
	t.Parallel()
	for name, fresh := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			idp := startIssuer(t)
			database := fresh(t)
			g, f := newGateway(t, settings{database: database, more: fmt.Sprintf(
				"auth: {mode: token, api_keys: true, jwt: {issuer: %q, audience: [docket], leeway: 0s, operator_claim: roles, operator_value: op}}\n", idp.url)})
			f.OnModel("primary", acknowledged(nil, ""))
			keyFor := func(subject string, more ...string) string {
				return g.docket(t, append([]string{"keys", "create", "--issuer", idp.url, "--subject", subject, "--expires", "90d"}, more...)...)
			}
			aliceKey, bobKey, operatorKey := keyFor("alice"), keyFor("bob"), keyFor("oscar", "--operator")
			laptop, phone, operatorToken := idp.token(t, "alice", time.Hour), idp.token(t, "alice", time.Hour), idp.token(t, "olga", time.Hour, "op")
			require.NotEqual(t, laptop, phone)

			j := g.with(laptop).create(t, intent("the intent"))
			g.with(laptop).attemptBecomes(t, j.ID, 1, "RUNNING")
			for device, token := range map[string]string{"another sign-in": phone, "an API key": aliceKey} {
				o := g.with(token).mutate(t, "createJob", createMutation, intent("the intent"))
				require.True(t, o.Replayed, device)
				require.Equal(t, j.ID, o.Job.ID, device)
				require.NotNil(t, g.with(token).jobByKey(t, "the intent"), device)
			}
			own := g.with(bobKey).mutate(t, "createJob", createMutation, intent("the intent"))
			require.False(t, own.Replayed, "bob's key is bob's")
			require.Nil(t, g.with(bobKey).jobByKey(t, "nothing"))
			require.JSONEq(t, `{"data":{"job":null}}`, g.with(bobKey).post(t, `query($id: ID!){job(id: $id){id}}`, variables{"id": j.ID}).text)
			for _, token := range []string{operatorToken, operatorKey} {
				require.Equal(t, "alice", g.with(token).job(t, j.ID).Owner)
			}

			t.Run("WhoIsNobodyGetsThePageAndNothingElse", func(t *testing.T) {
				anyone := g.as("")
				for path, status := range map[string]int{"/": 200, "/healthz": 200, "/readyz": 200, "/metrics": 401, "/graphql?query={viewer{subject}}": 401} {
					require.Equal(t, status, anyone.getStatus(t, path), path)
				}
				for _, c := range []*client{anyone, g.as("alice"), g.as("alice:operator"), g.with(laptop + "x"), g.with(aliceKey[:len(aliceKey)-1])} {
					res := c.post(t, `{viewer{subject}}`, nil)
					require.Equal(t, http.StatusUnauthorized, res.status)
					require.Equal(t, []string{"UNAUTHENTICATED"}, res.codes())
				}
				for token, status := range map[string]int{aliceKey: http.StatusForbidden, operatorKey: http.StatusOK} {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/metrics", nil)
					require.NoError(t, err)
					req.Header.Set("Authorization", "Bearer "+token)
					res, err := g.http.Do(req)
					require.NoError(t, err)
					require.NoError(t, res.Body.Close())
					require.Equal(t, status, res.StatusCode)
				}
			})

			// Open connections: alice's short-lived token, and bob's key, which is revoked.
			short := idp.token(t, "alice", 5*time.Second)
			expiring := g.with(short).overWebSocket(t, eventsStream, variables{"id": j.ID})
			expiringSSE := g.with(short).overSSE(t, eventsStream, variables{"id": j.ID})
			revoked := g.with(bobKey).overWebSocket(t, eventsStream, variables{"id": own.Job.ID})
			revokedSSE := g.with(bobKey).overSSE(t, eventsStream, variables{"id": own.Job.ID})
			g.docket(t, "keys", "revoke", "key_"+bobKey[3:29])
			numbers := func(t *testing.T, s *stream) (last int, end message) {
				t.Helper()
				for {
					m := s.next(t)
					if m.end != "" || len(m.Errors) > 0 {
						return last, m
					}
					e := decode[event](t, m.Data["jobEvents"])
					require.Equal(t, last+1, e.Number)
					last = e.Number
				}
			}
			_, end := numbers(t, revoked)
			require.Contains(t, end.end, "4403")
			seen, end := numbers(t, expiring)
			require.Contains(t, end.end, "4403")
			require.Positive(t, seen)
			for _, s := range []*stream{expiringSSE, revokedSSE} {
				_, end := numbers(t, s)
				require.Equal(t, "broken: <nil>, UNAUTHENTICATED", end.end, "it is not complete")
			}
			res := g.with(bobKey).post(t, `{viewer{subject}}`, nil)
			require.Equal(t, http.StatusUnauthorized, res.status)
			require.Contains(t, res.text, "were revoked")
			require.Contains(t, g.with(short).post(t, `{viewer{subject}}`, nil).text, "have expired")

			// A new token goes on where the old one ended.
			g.with(phone).cancelJob(t, j.ID)
			story := rest[event](t, g.with(phone).overWebSocket(t, eventsStream, variables{"id": j.ID, "after": seen}), "jobEvents")
			require.Equal(t, seen+1, story[0].Number)
			require.Equal(t, "CANCELLED", story[len(story)-1].To)

			var list struct {
				Keys []struct{ State, Subject string }
			}
			require.NoError(t, json.Unmarshal([]byte(g.docket(t, "keys", "list", "--format", "json")), &list))
			require.Len(t, list.Keys, 3)
			require.Equal(t, "REVOKED", list.Keys[1].State)
			for _, credential := range []string{aliceKey, bobKey, operatorKey, laptop, phone, short, operatorToken} {
				secret := credential[len(credential)-50:]
				requireAbsent(t, database, secret, idp.url)
				require.NotContains(t, g.log.String(), secret)
				require.NotContains(t, res.text, secret)
			}
			f.requireOnce(t)
		})
	}
}
