package app

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/docket-gateway/docket/internal/apikeys"
	"github.com/docket-gateway/docket/internal/config"
)

func TestKeysCommands(t *testing.T) {
	t.Parallel()
	env := fresh(t)
	code, _, stderr := runs(t, env, "keys", "create", "--issuer", "i", "--subject", "s")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "docket migrate up", "nothing is left behind by a mistyped address")
	code, _, _ = runs(t, env, "migrate", "up")
	require.Zero(t, code)

	code, key, stderr := runs(t, env, "keys", "create", "--issuer", "https://i.example", "--subject", "alice", "--operator", "--expires", "90d", "--note", "n", "--by", "me")
	require.Zero(t, code, stderr)
	require.Regexp(t, `^dk_[0-9a-z]{26}_[0-9a-z]{59}\n$`, key, "standard output holds the key and nothing else")
	require.NotContains(t, stderr, key[30:80])
	id := "key_" + key[3:29]
	require.Contains(t, stderr, id)

	code, list, _ := runs(t, env, "keys", "list")
	require.Zero(t, code)
	require.Contains(t, list, "ACTIVE")
	require.NotContains(t, list, key[30:80])
	var all struct{ Keys []apikeys.Item }
	_, list, _ = runs(t, env, "keys", "list", "--format", "json")
	require.NoError(t, json.Unmarshal([]byte(list), &all))
	require.Len(t, all.Keys, 1)
	require.True(t, all.Keys[0].Operator)
	require.Equal(t, "me", all.Keys[0].CreatedBy)
	require.WithinDuration(t, time.Now().AddDate(0, 0, 90), *all.Keys[0].ExpiresAt, 2*time.Hour)

	for says, args := range map[string][]string{
		"say which: create, list, revoke": {"keys"},
		"--issuer: name the owner's":      {"keys", "create", "--subject", "s"},
		"the subject must be":             {"keys", "create", "--issuer", "i"},
		`"soon" is not 90d`:               {"keys", "create", "--issuer", "i", "--subject", "s", "--expires", "soon"},
		`the format "xml"`:                {"keys", "list", "--format", "xml"},
		"accepts 1 arg":                   {"keys", "revoke"},
	} {
		code, _, stderr := runs(t, env, args...)
		require.Equal(t, 2, code, args)
		require.Contains(t, stderr, says, args)
	}
	code, _, stderr = runs(t, env, "keys", "revoke", strings.TrimSpace(key))
	require.Equal(t, 1, code)
	require.NotContains(t, stderr, key[30:80], "a key that was given for its id")
	require.Contains(t, stderr, "there is no such API key")
	for _, says := range []string{" is revoked\n", " was revoked before\n"} {
		code, stdout, _ := runs(t, env, "keys", "revoke", id)
		require.Zero(t, code)
		require.Equal(t, id+says, stdout)
	}

	configured := write(t, t.TempDir(), "docket.yaml", "auth: {mode: token, jwt: {issuer: 'https://i.example/', audience: [a]}}\n")
	_, _, stderr = runs(t, env, "keys", "create", "--config", configured, "--issuer", "https://i.example", "--subject", "alice")
	require.Contains(t, stderr, "another owner's", "one slash away")
	_, _, stderr = runs(t, env, "keys", "create", "--config", configured, "--subject", "alice")
	require.Contains(t, stderr, `of "https://i.example/"`)
	require.NotContains(t, stderr, "Note:")
}

func TestParseExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "90d": now.AddDate(0, 0, 90), "12h": now.Add(12 * time.Hour), "2026-12-31T00:00:00Z": time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC),
	} {
		got, err := parseExpiry(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"0d", "-1d", "d", "1.5d", "0s", "-1h", "40000d", "2026-03-14T12:00:00Z", "tomorrow", "90"} {
		_, err := parseExpiry(text, now)
		require.Error(t, err, text)
	}
}

// Whoever has to prove who they are may come from anywhere. A provider of identities that is not there keeps nobody else out.
func TestTokenModeListensAnywhereAndStartsWithoutTheIssuer(t *testing.T) {
	t.Parallel()
	nobody, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	issuer := "http://" + nobody.Addr().String()
	require.NoError(t, nobody.Close())
	cfg := defaults(t)
	cfg.Listen = "0.0.0.0:0"
	cfg.Auth = config.Auth{Mode: config.AuthModeToken, APIKeys: true, JWT: config.JWT{Issuer: issuer, Audience: []string{"a"}, Algorithms: []string{"ES256"}}}
	g := serve(t, cfg)
	key, _, err := apikeys.Create(t.Context(), g.store.Client(), apikeys.NewKey{Issuer: issuer, Subject: "alice", By: "tester"})
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(g.addr)
	require.NoError(t, err)
	for token, want := range map[string]struct {
		status int
		says   string
	}{
		key: {http.StatusOK, `"subject":"alice"`}, "eyJhbGciOiJFUzI1NiJ9.e30.x": {http.StatusServiceUnavailable, "AUTH_UNAVAILABLE"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/graphql?query={viewer{subject}}", nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := client.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, want.status, res.StatusCode, string(body))
		require.Contains(t, string(body), want.says)
		require.NotContains(t, g.log.String(), token)
	}
	line(t, g.log, "the keys of auth.jwt.issuer cannot be fetched")

	cfg.Auth.JWT.Algorithms = []string{"HS256"}
	_, err = Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "HS256")
}
