// Package gemini sends to the Gemini API by generateContent streams. Vertex AI, with its accounts, projects and locations, is
// not spoken.
//
// The official SDK's client makes the requests: its types, its paths, its headers. It is built once and has nothing to send with but
// the client of package exchange that a request's context brings along, since the SDK takes an http.Client for all
// requests only. Its retries and its automatic continuation, which sends further requests, are off. It looks at the environment while it is
// built (GOOGLE_API_KEY, GEMINI_API_KEY, GOOGLE_GEMINI_BASE_URL, GOOGLE_GENAI_USE_VERTEXAI and others), but only for
// what is not set, and all of it is. Answers are read here from the bytes that came, and decoded with the SDK's types: its own
// stream forgets whether an answer was cut and takes no care of damaged text. Answers are never repaired.
//
// The Gemini API has no idempotency key and no client request id, so nothing of a request tells a second one from it, and a
// provider of this kind is never idempotent. What names a request is Google's own responseId, which comes with each chunk;
// answers have no documented header that does.
package gemini

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"google.golang.org/genai"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
)

// Kind is the provider kind in the configuration.
const Kind = "gemini"

// Version is the adapter version.
const Version = "gemini/2"

// defaultAPIVersion is the one that has output schemas.
const defaultAPIVersion = "v1beta"

// Provider sends with one configured key.
type Provider struct {
	models map[string]providers.Model
	client *exchange.Client
	sdk    *genai.Models // nil without a key
}

var _ providers.Provider = (*Provider)(nil)

// New is the kind's factory. It opens no connection.
func New(cfg providers.Config) (providers.Provider, error) {
	return NewWithOptions(cfg, exchange.Options{})
}

var (
	modelName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)
	apiVersion = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]*)?$`)
)

// NewWithOptions is New with a dialer, trust or connection re-use of its own. The time-outs are always cfg's.
func NewWithOptions(cfg providers.Config, opts exchange.Options) (*Provider, error) {
	switch {
	case cfg.BaseURL == "":
		return nil, &providers.ConfigError{Path: "base_url", Problem: "is required for the kind " + Kind}
	case cfg.Idempotent:
		return nil, &providers.ConfigError{Path: "idempotent", Problem: "must be false: the Gemini API has no idempotency keys"}
	case cfg.API != "":
		return nil, &providers.ConfigError{Path: "api", Problem: "must be empty: the kind " + Kind + " speaks one API"}
	case cfg.Background:
		return nil, &providers.ConfigError{Path: "background", Problem: "must be false: the kind " + Kind + " has no background requests"}
	}
	base, version, err := splitVersion(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	p := &Provider{client: exchange.New(opts.For(cfg)), models: map[string]providers.Model{}}
	for i, m := range cfg.Models {
		if !modelName.MatchString(m.Name) || strings.Contains(m.Name, "..") {
			return nil, &providers.ConfigError{Path: fmt.Sprintf("models[%d].name", i), Problem: "must be letters, digits and . _ - / without .., as the Gemini API names models"}
		}
		p.models[m.Name] = m
	}
	if cfg.APIKey == "" { // commands that send nothing need none, and the SDK would take one from the environment
		return p, nil
	}
	sdk, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend:    genai.BackendGeminiAPI,
		APIKey:     cfg.APIKey,
		HTTPClient: &http.Client{Transport: perRequest{}},
		HTTPOptions: genai.HTTPOptions{
			BaseURL: base, APIVersion: version, Headers: http.Header{"User-Agent": {"docket"}},
			RetryOptions: &genai.HTTPRetryOptions{Attempts: genai.Ptr(int32(1))},
		},
	})
	if err != nil {
		return nil, errors.New("gemini: the SDK's client could not be built") // its errors print the whole configuration, with the key
	}
	p.sdk = sdk.Models
	return p, nil
}

// splitVersion takes the API's version off a base URL that ends with one, since the SDK wants it apart.
func splitVersion(base string) (address, version string, err error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", "", &providers.ConfigError{Path: "base_url", Problem: "is not a URL"}
	}
	u.Path = strings.TrimRight(u.Path, "/")
	version = defaultAPIVersion
	if last := path.Base(u.Path); apiVersion.MatchString(last) {
		version = last
		u.Path = strings.TrimSuffix(u.Path, last)
	}
	return u.String(), version, nil
}

// AdapterVersion implements providers.Provider.
func (p *Provider) AdapterVersion() string { return Version }

// Close closes idle connections.
func (p *Provider) Close() { p.client.Close() }

// Send implements providers.Provider. The acknowledgement is the headers of a 2xx answer.
func (p *Provider) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	config, err := p.config(req)
	if err != nil {
		return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{
			Code: providers.CodeSchemaNotSupported, Message: err.Error()}}
	}
	if p.sdk == nil {
		return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{
			Code: providers.CodeUnauthorized, Message: "no API key is configured, so nothing was sent"}}
	}
	return p.client.Do(ctx, exchange.Call{
		ReadError: readError,
		Read:      readAnswer,
		Send: func(ctx context.Context, c *http.Client) error {
			// The SDK makes a deadline a header that asks Google to give up then. How long an answer is waited for
			// is the exchange's business, and it holds the request by its own context.
			ctx = context.WithValue(context.WithoutCancel(ctx), clientKey{}, c)
			for _, err := range p.sdk.GenerateContentStream(ctx, req.Model, genai.Text(req.Prompt), config) {
				if err != nil {
					return err //nolint:wrapcheck // counts only if nothing was sent
				}
			}
			return nil
		},
	}, r)
}

type clientKey struct{}

var errNoClient = errors.New("gemini: a request that no attempt made")

// perRequest sends with the client that the request's context holds, and with no other.
type perRequest struct{}

// RoundTrip implements http.RoundTripper.
func (perRequest) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(clientKey{}).(*http.Client)
	if !ok {
		return nil, errNoClient
	}
	return c.Transport.RoundTrip(req) //nolint:wrapcheck // a transport's errors are passed on as they are
}
