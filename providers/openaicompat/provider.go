// Package openaicompat sends to anything that speaks OpenAI's Chat Completions over HTTP: vLLM, llama.cpp's server,
// Ollama, gateways.
//
// Requests are built with the official SDK's types. The transport is package exchange and answers are decoded here,
// because the SDK hides what the classification needs: its stream ends in the same way with and without [DONE], stops at
// the first damaged event, and its decoder turns a number into text where text was promised. Answers are never repaired.
package openaicompat

import (
	"context"
	"net/http"
	"strings"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

// Kind is the provider kind in the configuration.
const Kind = "openai-compatible"

// Version is the adapter version.
const Version = "openai-compatible/2"

// Provider sends to one configured server.
type Provider struct {
	cfg    providers.Config
	url    string
	client *exchange.Client
}

var _ providers.Provider = (*Provider)(nil)

// New is the kind's factory. It opens no connection.
func New(cfg providers.Config) (providers.Provider, error) {
	return NewWithOptions(cfg, exchange.Options{})
}

// NewWithOptions is New with a dialer, trust or connection re-use of its own. The time-outs are always cfg's.
func NewWithOptions(cfg providers.Config, opts exchange.Options) (*Provider, error) {
	if cfg.BaseURL == "" {
		return nil, &providers.ConfigError{Path: "base_url", Problem: "is required for the kind " + Kind}
	}
	opts = opts.For(cfg)
	return &Provider{
		cfg:    cfg,
		url:    strings.TrimRight(cfg.BaseURL, "/") + "/chat/completions",
		client: exchange.New(opts),
	}, nil
}

// AdapterVersion implements providers.Provider.
func (p *Provider) AdapterVersion() string { return Version }

// Close closes idle connections.
func (p *Provider) Close() { p.client.Close() }

// Send implements providers.Provider. The acknowledgement is the headers of a 2xx answer.
func (p *Provider) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	body, err := buildBody(req, p.cfg)
	if err != nil {
		return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{
			Code: providers.CodeNotSent, Message: "the request could not be built"}}
	}
	return p.client.Do(ctx, exchange.Call{
		URL:       p.url,
		Header:    p.header(req),
		Body:      body,
		Read:      func(a exchange.Answer) (providers.Outcome, error) { return ReadAnswer(a, req.MaxOutputTokens) },
		ReadError: ReadErrorBody,
	}, r)
}

// header carries the attempt's id twice: as the client request id that OpenAI and many proxies log, and as the
// idempotency key for servers that know one. A server that knows neither ignores them.
func (p *Provider) header(req providers.Request) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream, application/json;q=0.9")
	h.Set("User-Agent", "docket")
	if p.cfg.APIKey != "" {
		h.Set("Authorization", "Bearer "+p.cfg.APIKey)
	}
	if req.AttemptID != "" {
		h.Set("X-Client-Request-Id", req.AttemptID)
		h.Set("Idempotency-Key", req.AttemptID)
	}
	if req.Traceparent != "" {
		h.Set("Traceparent", req.Traceparent)
	}
	return h
}
