package config

import (
	"fmt"
	"slices"
	"time"
)

// Auth says how a request's principal is found.
type Auth struct {
	Mode    string `yaml:"mode"`     // dev or token
	APIKeys bool   `yaml:"api_keys"` // of mode token
	JWT     JWT    `yaml:"jwt"`      // of mode token
}

// JWT says whose tokens are taken; none while Issuer is empty.
type JWT struct {
	Issuer        string        `yaml:"issuer"`         // the claim iss, byte for byte; https, or http on loopback
	JWKSURL       string        `yaml:"jwks_url"`       // https, or http on loopback; empty: by discovery
	Audience      []string      `yaml:"audience"`       // at least one, each once
	Algorithms    []string      `yaml:"algorithms"`     // at least one of Algorithms, each once
	OperatorClaim string        `yaml:"operator_claim"` // both or none
	OperatorValue string        `yaml:"operator_value"`
	Leeway        time.Duration `yaml:"leeway"` // 0s to 5m
}

// The modes of Auth.
const (
	AuthModeDev   = "dev"   // trusts what the client says that it is, on loopback listeners only
	AuthModeToken = "token" // API keys and JWT
)

// algorithms are those of signatures by public keys. A list may hold no other: not none, and not HS*, whose key a
// published one could be taken for.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func defaultAuth() Auth {
	return Auth{Mode: AuthModeDev, JWT: JWT{Algorithms: []string{"RS256", "ES256", "EdDSA"}, Leeway: 30 * time.Second}}
}

func (l *loader) auth(a Auth) {
	l.oneOf("auth.mode", a.Mode, AuthModeDev, AuthModeToken)
	j := a.JWT
	if a.Mode == AuthModeToken && !a.APIKeys && j.Issuer == "" {
		l.problem("auth", "mode token needs api_keys: true, or jwt.issuer, or both: nobody could come in")
	}
	l.distinct("auth.jwt.audience", j.Audience)
	l.distinct("auth.jwt.algorithms", j.Algorithms)
	for i, name := range j.Algorithms {
		l.oneOf(fmt.Sprintf("auth.jwt.algorithms[%d]", i), name, algorithms...)
	}
	l.duration("auth.jwt.leeway", j.Leeway, 0, 5*minute)
	if (j.OperatorClaim == "") != (j.OperatorValue == "") {
		l.problem("auth.jwt.operator_claim", "needs operator_value, and the other way round")
	}
	if j.JWKSURL != "" {
		l.baseURL("auth.jwt.jwks_url", j.JWKSURL)
	}
	if j.Issuer == "" {
		if j.JWKSURL != "" || len(j.Audience) > 0 || j.OperatorClaim != "" {
			l.problem("auth.jwt", "needs issuer")
		}
		return
	}
	l.baseURL("auth.jwt.issuer", j.Issuer)
	if len(j.Issuer) > 255 {
		l.problem("auth.jwt.issuer", "must have at most 255 bytes")
	}
	if len(j.Audience) == 0 {
		l.problem("auth.jwt.audience", "must name at least one: tokens for other services would be taken")
	}
	if len(j.Algorithms) == 0 {
		l.problem("auth.jwt.algorithms", "must name at least one")
	}
}

func (l *loader) distinct(path string, list []string) {
	for i, s := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if s == "" {
			l.problem(at, "must not be empty")
		} else if slices.Contains(list[:i], s) {
			l.problem(at, "is named twice")
		}
	}
}

// idle warns of what mode dev does not look at.
func (a Auth) idle() []string {
	if a.Mode == AuthModeDev && (a.APIKeys || a.JWT.Issuer != "") {
		return []string{"auth.mode is dev: auth.api_keys and auth.jwt have no effect"}
	}
	return nil
}
