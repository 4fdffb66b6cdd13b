package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/docket-gateway/docket/internal/apikeys"
	"github.com/docket-gateway/docket/internal/auth"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/oidc"
	"github.com/docket-gateway/docket/internal/store"
)

// identity is how requests are authenticated.
type identity struct {
	guard *auth.Guard
	keys  *apikeys.Keys  // nil: no API keys
	jwt   *oidc.Verifier // nil: no JWT
}

// believesClients says that nothing proves who a client is, so that only this machine may be listened to.
func believesClients(cfg config.Auth) bool { return cfg.Mode != config.AuthModeToken }

func newIdentity(cfg config.Auth, s *store.Store, log *slog.Logger) (*identity, error) {
	if believesClients(cfg) {
		return &identity{guard: auth.NewDevGuard()}, nil
	}
	i, token := &identity{}, auth.Token{}
	if cfg.APIKeys {
		i.keys = apikeys.New(s.Client(), apikeys.Options{Logger: log})
		token.Keys = i.keys
	}
	if j := cfg.JWT; j.Issuer != "" {
		var err error
		i.jwt, err = oidc.New(oidc.Config{
			Issuer: j.Issuer, JWKSURL: j.JWKSURL, Audience: j.Audience, Algorithms: j.Algorithms, Leeway: j.Leeway,
			Operator: oidc.Claim{Name: j.OperatorClaim, Value: j.OperatorValue},
		}, oidc.Options{Logger: log})
		if err != nil {
			return nil, fmt.Errorf("auth.jwt: %w", err)
		}
		token.JWT = i.jwt
	}
	i.guard = auth.NewGuard(token)
	return i, nil
}

// run keeps what credentials are checked with up to date until life ends. It returns once the identity provider was asked
// a first time: with its answer the first requests are not turned away, and without it the gateway serves all the same.
func (i *identity) run(life context.Context, background *sync.WaitGroup) {
	if i.keys != nil {
		background.Go(func() { i.keys.Run(life) })
	}
	if i.jwt != nil {
		background.Go(func() { i.jwt.Run(life) })
		<-i.jwt.Tried()
	}
}

// reachable refuses to listen beyond this machine where clients are believed.
func reachable(ctx context.Context, cfg *config.Config) error {
	if !believesClients(cfg.Auth) {
		return nil
	}
	return auth.RequireLoopback(ctx, cfg.Listen)
}
