package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/docket-gateway/docket/providers"
	"github.com/docket-gateway/docket/providers/exchange"
	"github.com/docket-gateway/docket/providers/openaicompat"
)

var _ providers.Canceller = (*Provider)(nil)

// cancelFor bounds one try to cancel a response.
const cancelFor = 5 * time.Second

// Retrieve implements providers.Retriever: it asks for a background response by its id. Completed, failed, incomplete and
// cancelled responses have ended. Queued and in progress are Unknown, and so is 404: OpenAI may have removed the response or the key
// may be of another project, and neither says what became of the request.
func (p *Provider) Retrieve(ctx context.Context, q providers.Query) (providers.Outcome, error) {
	read, gone := false, false
	out := p.asking.Do(ctx, exchange.Call{
		Send: func(ctx context.Context, c *http.Client) error {
			_, err := p.responses.Get(ctx, q.Handle, responses.ResponseGetParams{}, options(c, "", q.Traceparent)...)
			var status *openai.Error
			gone = errors.As(err, &status) && status.StatusCode == http.StatusNotFound
			return err //nolint:wrapcheck // counts only if nothing was sent
		},
		ReadError: openaicompat.ReadErrorBody,
		Read: func(a exchange.Answer) (out providers.Outcome, err error) {
			out, read, err = readKept(a, q.Handle)
			return out, err
		},
	}, unheard{})
	switch {
	case read:
		return p.back(q.Schema, out), nil
	case gone:
		return providers.Outcome{Kind: providers.Unknown, Failure: out.Failure, ProviderRequestID: out.ProviderRequestID}, nil
	default:
		return providers.Outcome{}, out.Failure
	}
}

// Cancel implements providers.Canceller: it ends a background response. One that has ended already stays as it is, and is what
// comes back, with its usage.
func (p *Provider) Cancel(ctx context.Context, q providers.Query) (*providers.Usage, error) {
	ctx, stop := context.WithTimeout(ctx, cancelFor)
	defer stop()
	read := false
	out := p.asking.Do(ctx, exchange.Call{
		Send: func(ctx context.Context, c *http.Client) error {
			_, err := p.responses.Cancel(ctx, q.Handle, append(options(c, "", q.Traceparent), option.WithHeader("X-Client-Request-Id", q.AttemptID))...)
			return err //nolint:wrapcheck // counts only if nothing was sent
		},
		ReadError: openaicompat.ReadErrorBody,
		Read: func(a exchange.Answer) (out providers.Outcome, err error) {
			out, read, err = readKept(a, q.Handle)
			return out, err
		},
	}, unheard{})
	if !read {
		return nil, out.Failure
	}
	return out.Usage, nil
}

// readKept reads the whole response with that id. ok is false if something else came.
func readKept(a exchange.Answer, id string) (out providers.Outcome, ok bool, err error) {
	raw, err := io.ReadAll(a.Body)
	if err != nil {
		return out, false, err //nolint:wrapcheck // classified by the exchange
	}
	resp, ok := decodeResponse(bytes.TrimSpace(raw))
	if !ok || resp.ID != id {
		return exchange.Malformed("something else than the response that was asked for"), false, nil
	}
	return outcome(resp), true, nil
}

// unheard is the reporter of what is not an attempt's own request.
type unheard struct{}

func (unheard) Acknowledged(providers.Acknowledgement) {}
func (unheard) Progress()                              {}
func (unheard) Unknown(providers.Failure)              {}
