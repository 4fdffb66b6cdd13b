// Package anthropic sends to Anthropic by the Messages API.
//
// The official SDK's service makes the requests: its types, its paths, its headers. Its retries and its telemetry are off, it
// reads nothing from the environment or from profiles on disk, and all that it has to send with is package exchange's client,
// which lets one request through. Answers are read here from the bytes that came and not from what the SDK makes of
// them, because it hides what the classification needs: its stream ends in the same way with and without message_stop, and
// passes over lines that it does not understand. Events and messages are decoded with the SDK's types. Answers are
// never repaired.
//
// Anthropic knows no idempotency key and no client request id: "the API doesn't currently honor an idempotency key, and
// sending Idempotency-Key would imply a guarantee that isn't there" (a maintainer, in anthropic-sdk-typescript's pull request
// 1144). None is sent, and a provider of this kind cannot be configured as idempotent. What names a request is its
// trace context and the request-id that Anthropic answers with.
package anthropic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

// Kind is the provider kind in the configuration.
const Kind = "anthropic"

// Version is the adapter version.
const Version = "anthropic/2"

// The values of providers.Model.StructuredOutput.
const (
	// StructuredNative asks for structured outputs, which models have from Claude 4.5 on: the answer is constrained to the schema
	// while it is written. It is the default, because the newest models take nothing else: they think by themselves, and a forced
	// tool cannot go with thinking. An older model answers 400 and has run nothing.
	StructuredNative = "native"
	// StructuredTool forces one tool whose input is the answer. It takes nearly any schema, and promises less: the schema is what
	// the model was told, and nothing holds it to that.
	StructuredTool = "tool"
)

// Provider sends to one configured account.
type Provider struct {
	models   map[string]providers.Model
	client   *exchange.Client
	messages sdk.MessageService
}

var _ providers.Provider = (*Provider)(nil)

// New is the kind's factory. It opens no connection.
func New(cfg providers.Config) (providers.Provider, error) {
	return NewWithOptions(cfg, exchange.Options{})
}

// NewWithOptions is New with a dialer, trust or connection re-use of its own. The time-outs are always cfg's.
func NewWithOptions(cfg providers.Config, opts exchange.Options) (*Provider, error) {
	if err := check(cfg); err != nil {
		return nil, err
	}
	p := &Provider{client: exchange.New(opts.For(cfg)), models: map[string]providers.Model{}}
	for _, m := range cfg.Models {
		p.models[m.Name] = m
	}
	// The service on its own: the SDK's whole client would lay ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN,
	// ANTHROPIC_BASE_URL, ANTHROPIC_CUSTOM_HEADERS, federation's variables and the profiles on disk under these options.
	// Its spans are on by default, and ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE puts prompts into them.
	list := []option.RequestOption{
		option.WithBaseURL(baseURL(cfg.BaseURL)), option.WithMaxRetries(0), option.WithoutOpenTelemetry(), option.WithHeader("User-Agent", "docket"),
	}
	if cfg.APIKey != "" {
		list = append(list, option.WithAPIKey(cfg.APIKey))
	}
	p.messages = sdk.NewMessageService(list...)
	return p, nil
}

// check refuses settings that would have no effect, or an effect that nobody asked for.
func check(cfg providers.Config) error {
	refuse := func(path, problem string) error { return &providers.ConfigError{Path: path, Problem: problem} }
	switch {
	case cfg.BaseURL == "":
		return refuse("base_url", "is required for the kind "+Kind)
	case cfg.API != "":
		return refuse("api", "the kind "+Kind+" has one only, so leave it out")
	case cfg.Background:
		return refuse("background", "the kind "+Kind+" does not know it")
	case cfg.StrictSchema:
		return refuse("strict_schema", "the kind "+Kind+" has structured_output at each model instead")
	case cfg.Idempotent:
		return refuse("idempotent", "Anthropic knows no idempotency key: a request that is sent again runs again")
	}
	for i, m := range cfg.Models {
		switch m.StructuredOutput {
		case "", StructuredNative, StructuredTool:
		default:
			return refuse(fmt.Sprintf("models[%d].structured_output", i), "must be "+StructuredNative+" or "+StructuredTool)
		}
	}
	return nil
}

// baseURL is the address without /v1, which the SDK's paths begin with and which other kinds' addresses end with.
func baseURL(configured string) string {
	return strings.TrimSuffix(strings.TrimRight(configured, "/"), "/v1")
}

// AdapterVersion implements providers.Provider.
func (p *Provider) AdapterVersion() string { return Version }

// Close closes idle connections.
func (p *Provider) Close() { p.client.Close() }

// Send implements providers.Provider. The acknowledgement is the headers of a 2xx answer. What the task asks for and
// Anthropic does not take is Failed before anything is sent.
func (p *Provider) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	params, err := p.params(req)
	if err != nil {
		var f *providers.Failure
		if !errors.As(err, &f) {
			f = &providers.Failure{Code: providers.CodeNotSent, Message: "the request could not be built"}
		}
		return providers.Outcome{Kind: providers.Failed, Failure: f}
	}
	return p.client.Do(ctx, exchange.Call{
		ReadError:       readErrorBody,
		RequestIDHeader: "Request-Id",
		Send: func(ctx context.Context, c *http.Client) error {
			return p.messages.NewStreaming(ctx, params, options(c, req.Traceparent)...).Err()
		},
		Read: reader{tool: len(params.Tools) > 0}.read,
	}, r)
}

// options are those of one request.
func options(c *http.Client, traceparent string) []option.RequestOption {
	list := []option.RequestOption{option.WithHTTPClient(c)}
	if traceparent != "" {
		list = append(list, option.WithHeader("Traceparent", traceparent))
	}
	return list
}
