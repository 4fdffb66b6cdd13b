// Package app wires the parts of Docket together and holds its commands. Nothing imports it but the program itself, contracts/contracttest and
// tests that run the whole.
package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/contracts/gate"
	"github.com/docket-gateway/docket/internal/config"
	"github.com/docket-gateway/docket/internal/dispatch"
	"github.com/docket-gateway/docket/internal/jobs"
	"github.com/docket-gateway/docket/internal/queue"
	"github.com/docket-gateway/docket/internal/store"
	"github.com/docket-gateway/docket/internal/tasks"
	"github.com/docket-gateway/docket/internal/webhooks"
	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/anthropic"
	"github.com/docket-gateway/docket/providers/demo"
	"github.com/docket-gateway/docket/providers/gemini"
	"github.com/docket-gateway/docket/providers/openai"
	"github.com/docket-gateway/docket/providers/openaicompat"
)

// factories has one line for each kind of provider.
func factories() map[string]providers.Factory {
	return map[string]providers.Factory{
		config.KindAnthropic:        anthropic.New,
		config.KindDemo:             demo.New,
		config.KindGemini:           gemini.New,
		config.KindOpenAI:           openai.New,
		config.KindOpenAICompatible: openaicompat.New,
	}
}

// parts is what serving and the contract commands share.
type parts struct {
	cfg      *config.Config
	log      *slog.Logger
	store    *store.Store
	registry *providers.Registry
	suites   []contracts.Suite
	catalog  *tasks.Catalog
	digests  contracts.Digests
	gate     *gate.Gate
}

// build opens what a configuration names. The caller closes the store.
func build(ctx context.Context, cfg *config.Config, log *slog.Logger, now clock, options ...store.Option) (*parts, error) {
	registry, err := newRegistry(cfg)
	if err != nil {
		return nil, err
	}
	suites, err := loadSuites(cfg)
	if err != nil {
		return nil, err
	}
	defs := make([]*tasks.Definition, 0, len(suites))
	for _, s := range suites {
		defs = append(defs, s.Task)
	}
	catalog, err := tasks.NewCatalog(defs...)
	if err != nil {
		return nil, fmt.Errorf("load tasks: %w", err)
	}
	if err := checkTaskInputs(cfg.Limits.Input, defs); err != nil {
		return nil, err
	}
	for _, d := range defs {
		for _, t := range d.Route() {
			if _, ok := registry.Lookup(t); !ok {
				log.WarnContext(ctx, "a task's route names a target that is not configured", "task", d.Name, "target", t)
			}
		}
	}
	digests, err := contracts.NewDigests(registry, suites)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, cfg.Database.Reveal(), append(options, store.WithMaxConns(connections(cfg)), store.WithDirect(cfg.DatabaseDirect.Reveal()))...)
	if err != nil {
		return nil, err
	}
	return &parts{
		cfg: cfg, log: log, store: s, registry: registry, suites: suites, catalog: catalog,
		digests: digests, gate: gate.New(digests, now),
	}, nil
}

// connections is the size of the pool: an attempt needs one for a moment only, questions and streams some more.
func connections(cfg *config.Config) int32 {
	places := 0
	for _, p := range cfg.Providers {
		places += p.MaxConcurrency
	}
	return int32(min(places+16, 64))
}

// metrics is what counts for the parts of a process.
type metrics interface {
	jobs.Metrics
	webhooks.Metrics
}

// service is the life of jobs with its queues, for serving and for commands. Entries can be added at once; nothing works on
// them before a dispatcher of this or another process does.
func (p *parts) service(n jobs.Notifier, m metrics, more ...queue.Part) (*jobs.Service, *dispatch.Queue, error) {
	attempts := dispatch.NewQueue(dispatch.QueueOptions{Registry: p.registry, Logger: p.log})
	hooks, err := newWebhooks(p.cfg.Webhooks, p.log, m)
	if err != nil {
		return nil, nil, err
	}
	if _, err := queue.Open(p.store, queue.Options{Logger: p.log}, append(more, attempts, hooks)...); err != nil {
		return nil, nil, err
	}
	return jobs.New(jobs.Deps{
		Store: p.store, Catalog: p.catalog, Queue: attempts, Gate: p.gate, Targets: known{p.registry}, Prices: prices{p.registry}, Callbacks: hooks,
		Notifier: n, Metrics: m, Logger: p.log,
	}, jobs.Options{Lease: p.cfg.Lease, MaxInput: int(p.cfg.Limits.Input), MaxAttempts: p.cfg.MaxAttempts, MaxOpenJobs: p.cfg.Limits.OpenJobsPerOwner}), attempts, nil
}

func newWebhooks(cfg config.Webhooks, log *slog.Logger, m webhooks.Metrics) (*webhooks.Service, error) {
	o := webhooks.Options{AllowPrivate: cfg.AllowPrivate, Logger: log, Metrics: m}
	for _, s := range cfg.Secrets {
		o.Secrets = append(o.Secrets, s.Reveal())
	}
	return webhooks.New(o)
}

func newRegistry(cfg *config.Config) (*providers.Registry, error) {
	var list []providers.Config
	for _, p := range cfg.Providers {
		c := providers.Config{
			Place: p.Place, Name: p.Name, Kind: p.Kind, BaseURL: p.BaseURL, APIKey: p.APIKey.Reveal(),
			AckTimeout: p.AckTimeout, IdleTimeout: p.IdleTimeout, TotalTimeout: p.TotalTimeout, Linger: p.Linger,
			PresumeDeadAfter: p.PresumeDeadAfter, Idempotent: p.Idempotent, MaxConcurrency: p.MaxConcurrency, Currency: p.Currency,
			CircuitBreaker:       providers.CircuitBreaker(p.CircuitBreaker),
			ProxyFromEnvironment: p.ProxyFromEnvironment, API: unlessDefault(p.API, config.APIResponses), Background: p.Background,
			StrictSchema:   p.StrictSchema.Or(p.Kind == config.KindOpenAI),
			ResponseFormat: unlessDefault(p.ResponseFormat, config.FormatSchema), OmitStreamUsage: !p.StreamUsage.Or(true),
			MaxTokensField: p.MaxTokensField,
		}
		for _, m := range p.Models {
			c.Models = append(c.Models, providers.Model{
				Name: m.Name, ContextWindow: m.ContextWindow, MaxOutputTokens: m.MaxOutputTokens, Tokenizer: m.Tokenizer,
				Reasoning:        m.Reasoning.Or(p.Kind == config.KindOpenAICompatible && openaicompat.NamesReasoning(m.Name)),
				StructuredOutput: unlessDefault(m.StructuredOutput, config.StructuredNative),
				PricePerMillion: providers.Price{
					Input: string(m.PricePerMillion.Input), CachedInput: string(m.PricePerMillion.CachedInput), Output: string(m.PricePerMillion.Output),
				},
			})
		}
		list = append(list, c)
	}
	r, err := providers.NewRegistry(list, factories())
	if err != nil {
		return nil, fmt.Errorf("%w:\n  %w", config.ErrInvalid, err)
	}
	return r, nil
}

// unlessDefault leaves a default that is written out as empty as one that is not: contracts must not take it for a change.
func unlessDefault(value, byDefault string) string {
	if value == byDefault {
		return ""
	}
	return value
}

// loadSuites reads the configured task folders. Where the default folder is not there, the tasks that are part of the
// program stand in, so that a binary starts anywhere.
func loadSuites(cfg *config.Config) ([]contracts.Suite, error) {
	var all []contracts.Suite
	for _, dir := range cfg.Tasks {
		fsys, onDisk := os.DirFS(dir), true
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && slices.Equal(cfg.Tasks, config.Default().Tasks) {
			fsys, onDisk = contracts.ShippedTasks(), false
		}
		suites, err := contracts.LoadSuites(fsys)
		if err != nil {
			return nil, fmt.Errorf("load tasks from %s: %w", dir, err)
		}
		for _, s := range suites {
			if onDisk {
				s.Dir = filepath.Join(dir, s.Task.Name)
			}
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no task in %v", cfg.Tasks)
	}
	return all, nil
}

// check asks the gate outside of a transaction.
func (p *parts) check(ctx context.Context, d *tasks.Definition, target string) (gate.Decision, error) {
	return p.gate.Check(ctx, p.store.Client(), d, target)
}
