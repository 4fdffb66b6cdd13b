package app

import (
	"context"
	"log/slog"

	"github.com/docket-gateway/docket/internal/callbacks"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/providers"
)

func newCallbacks(cfg *config.Config, service callbacks.Settler, log *slog.Logger) (*callbacks.Handler, error) {
	o := callbacks.Options{Secrets: map[string][]string{}, BodyLimit: int64(cfg.Limits.Body), Logger: log}
	k := keeper{Settler: service, secrets: map[string][]providers.Secret{}}
	for _, p := range cfg.Providers {
		k.secrets[p.Name] = append(k.secrets[p.Name], providers.Secret(p.APIKey.Reveal()))
		for _, s := range p.CallbackSecrets {
			o.Secrets[p.Name] = append(o.Secrets[p.Name], s.Reveal())
			k.secrets[p.Name] = append(k.secrets[p.Name], providers.Secret(s.Reveal()))
		}
	}
	return callbacks.New(k, o)
}

// keeper takes a provider's secrets out of what it reports, as the registry does with what its adapter says.
type keeper struct {
	callbacks.Settler

	secrets map[string][]providers.Secret // by provider
}

// SettleReported implements callbacks.Settler.
func (k keeper) SettleReported(ctx context.Context, provider, attemptID string, o jobs.Outcome) (jobs.Verdict, error) {
	for _, s := range k.secrets[provider] {
		o.ProviderRequestID = s.Redact(o.ProviderRequestID)
		if f := o.Failure; f != nil {
			kept := *f
			kept.Code, kept.Message = s.Redact(f.Code), s.Redact(f.Message)
			o.Failure = &kept
		}
		if s.In(o.Output) {
			f := s.Echoed()
			o.Output, o.Failure = nil, &jobs.Failure{Code: f.Code, Message: f.Message}
		}
	}
	return k.Settler.SettleReported(ctx, provider, attemptID, o)
}
