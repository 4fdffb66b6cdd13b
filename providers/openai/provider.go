// Package openai sends to OpenAI by the Responses API or by Chat Completions.
//
// The official SDK's client makes the requests: its types, its paths, its headers. Its retries are off, it reads nothing from
// the environment, and all that it has to send with is package exchange's client, which lets one request through. Answers
// are read here from the bytes that came and not from what the SDK makes of them, because it hides what the classification needs: its
// stream passes over damaged lines, ends in the same way with and without an end, and keeps no usage of an answer that
// breaks off. Events and responses are decoded with the SDK's types. Answers are never repaired.
package openai

import (
	"context"
	"net/http"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/openaicompat"
)

// Kind is the provider kind in the configuration.
const Kind = "openai"

// Version is the adapter version.
const Version = "openai/2"

// The values of providers.Config.API.
const (
	APIResponses = "responses" // the default
	APIChat      = "chat"
)

// Provider sends to one configured account.
type Provider struct {
	cfg       providers.Config
	models    map[string]providers.Model
	client    *exchange.Client
	asking    *exchange.Client // for questions, whose late answers nobody waits for
	responses responses.ResponseService
	chat      openai.ChatCompletionService
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
	switch cfg.API {
	case "":
		cfg.API = APIResponses
	case APIResponses, APIChat:
	default:
		return nil, &providers.ConfigError{Path: "api", Problem: "must be " + APIResponses + " or " + APIChat}
	}
	if cfg.Background && cfg.API != APIResponses {
		return nil, &providers.ConfigError{Path: "background", Problem: "needs the API " + APIResponses}
	}
	opts = opts.For(cfg)
	p := &Provider{cfg: cfg, client: exchange.New(opts), models: map[string]providers.Model{}}
	opts.Linger = 0
	p.asking = exchange.New(opts)
	for _, m := range cfg.Models {
		p.models[m.Name] = m
	}
	// The services on their own: the SDK's whole client would lay OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_ORG_ID,
	// OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS of the environment under these options.
	sdk := []option.RequestOption{
		option.WithBaseURL(cfg.BaseURL), option.WithMaxRetries(0), option.WithHeader("User-Agent", "docket"),
	}
	if cfg.APIKey != "" {
		sdk = append(sdk, option.WithAPIKey(cfg.APIKey))
	}
	p.responses = responses.NewResponseService(sdk...)
	p.chat = openai.NewChatCompletionService(sdk...)
	return p, nil
}

// AdapterVersion implements providers.Provider.
func (p *Provider) AdapterVersion() string { return Version }

// Close closes idle connections.
func (p *Provider) Close() {
	p.client.Close()
	p.asking.Close()
}

// Send implements providers.Provider. The acknowledgement is the headers of a 2xx answer, or in the background the first
// event, with the response's id as the handle.
func (p *Provider) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	sent, form, err := p.form(req)
	if err != nil {
		return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{
			Code: providers.CodeSchemaNotSupported, Message: err.Error()}}
	}
	call := exchange.Call{ReadError: openaicompat.ReadErrorBody, HandleInBody: p.cfg.Background}
	switch p.cfg.API {
	case APIChat:
		params := p.chatParams(sent)
		call.Send = func(ctx context.Context, c *http.Client) error {
			return p.chat.NewStreaming(ctx, params, options(c, req.AttemptID, req.Traceparent)...).Err()
		}
		call.Read = func(a exchange.Answer) (providers.Outcome, error) {
			return openaicompat.ReadAnswer(a, req.MaxOutputTokens)
		}
	default:
		params := p.responsesParams(sent)
		call.Send = func(ctx context.Context, c *http.Client) error {
			return p.responses.NewStreaming(ctx, params, options(c, req.AttemptID, req.Traceparent)...).Err()
		}
		call.Read = readResponses
	}
	out := p.client.Do(ctx, call, r)
	if form != nil && out.Kind == providers.Completed {
		out.Output = form.Back(out.Output)
	}
	return out
}

// options are those of one request. The attempt's id goes along twice: as the client request id that OpenAI logs, and as
// the idempotency key.
func options(c *http.Client, attemptID, traceparent string) []option.RequestOption {
	list := []option.RequestOption{option.WithHTTPClient(c)}
	if attemptID != "" {
		list = append(list, option.WithHeader("X-Client-Request-Id", attemptID), option.WithHeader("Idempotency-Key", attemptID))
	}
	if traceparent != "" {
		list = append(list, option.WithHeader("Traceparent", traceparent))
	}
	return list
}
