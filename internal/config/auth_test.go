package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTokenModeIsRead(t *testing.T) {
	t.Parallel()
	cfg, err := Load(write(t, `
auth:
  mode: token
  api_keys: true
  jwt:
    issuer: https://issuer.example/tenant/
    audience: [docket, other]
    algorithms: [ES256]
    operator_claim: roles
    operator_value: docket-operator
    leeway: 5s
`), nil)
	require.NoError(t, err)
	require.Equal(t, Auth{Mode: AuthModeToken, APIKeys: true, JWT: JWT{
		Issuer: "https://issuer.example/tenant/", Audience: []string{"docket", "other"}, Algorithms: []string{"ES256"},
		OperatorClaim: "roles", OperatorValue: "docket-operator", Leeway: 5 * time.Second,
	}}, cfg.Auth)
	require.Empty(t, cfg.Warnings)

	cfg, err = Load(write(t, "auth: {api_keys: true}\n"), []string{"DOCKET_AUTH_MODE=token"})
	require.NoError(t, err)
	require.Equal(t, []string{"RS256", "ES256", "EdDSA"}, cfg.Auth.JWT.Algorithms)
	require.Equal(t, 30*time.Second, cfg.Auth.JWT.Leeway)
}

func TestTokenModeRefusesWhatWouldLetOthersIn(t *testing.T) {
	t.Parallel()
	const issuer = "issuer: 'https://i.example', audience: [a]"
	for jwt, says := range map[string]string{
		"":                            "auth: mode token needs api_keys: true, or jwt.issuer, or both",
		"issuer: 'https://i.example'": "auth.jwt.audience: must name at least one",
		"issuer: 'https://i.example', audience: ['']":    "auth.jwt.audience[0]: must not be empty",
		"issuer: 'https://i.example', audience: [a, a]":  "auth.jwt.audience[1]: is named twice",
		"issuer: 'http://i.example', audience: [a]":      "auth.jwt.issuer: must be https except on loopback",
		"issuer: 'i.example', audience: [a]":             "auth.jwt.issuer: is not a URL",
		"issuer: 'https://i.example?x=y', audience: [a]": "auth.jwt.issuer: must not hold a query",
		issuer + ", jwks_url: 'http://i.example/k'":      "auth.jwt.jwks_url: must be https except on loopback",
		issuer + ", algorithms: []":                      "auth.jwt.algorithms: must name at least one",
		issuer + ", algorithms: [none]":                  `auth.jwt.algorithms[0]: "none" is not one of`,
		issuer + ", algorithms: [RS256, HS256]":          `auth.jwt.algorithms[1]: "HS256" is not one of`,
		issuer + ", leeway: 6m":                          "auth.jwt.leeway: 6m0s is not between",
		issuer + ", operator_claim: roles":               "auth.jwt.operator_claim: needs operator_value",
		issuer + ", operator_value: op":                  "auth.jwt.operator_claim: needs operator_value",
		"jwks_url: 'https://i.example/keys'":             "auth.jwt: needs issuer",
		"audience: [a]":                                  "auth.jwt: needs issuer",
	} {
		_, err := Load(write(t, "auth: {mode: token, jwt: {"+jwt+"}}\n"), nil)
		require.ErrorIs(t, err, ErrInvalid, jwt)
		require.ErrorContains(t, err, says, jwt)
	}
	_, err := Load(write(t, "auth: {mode: tokens}\n"), nil)
	require.ErrorContains(t, err, `auth.mode: "tokens" is not one of dev, token`)
}

func TestDevModeWarnsOfWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	cfg, err := Load(write(t, "auth: {api_keys: true}\n"), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"auth.mode is dev: auth.api_keys and auth.jwt have no effect"}, cfg.Warnings)
}
