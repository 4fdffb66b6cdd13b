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

var _ providers.Retriever = (*Provider)(nil)

// cancelFor bounds how long a response is tried to be cancelled.
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
		Read: func(a exchange.Answer) (providers.Outcome, error) {
			raw, err := io.ReadAll(a.Body)
			if err != nil {
				return providers.Outcome{}, err //nolint:wrapcheck // classified by the exchange
			}
			resp, ok := decodeResponse(bytes.TrimSpace(raw))
			if !ok || resp.ID != q.Handle {
				return exchange.Malformed("something else than the response that was asked for"), nil
			}
			read = true
			return outcome(resp), nil
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

// cancel ends a background response whose answer is of no use any more. Best effort: if it does not work the response
// runs on and nobody reads it. ctx has ended by now.
func (p *Provider) cancel(ctx context.Context, handle, attemptID, traceparent string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelFor)
	defer stop()
	p.asking.Do(ctx, exchange.Call{
		Send: func(ctx context.Context, c *http.Client) error {
			_, err := p.responses.Cancel(ctx, handle, append(options(c, "", traceparent), option.WithHeader("X-Client-Request-Id", attemptID))...)
			return err //nolint:wrapcheck // nobody waits for it
		},
		Read: func(exchange.Answer) (providers.Outcome, error) {
			return providers.Outcome{Kind: providers.Completed}, nil
		},
	}, unheard{})
}

// unheard is the reporter of what is not an attempt's own request.
type unheard struct{}

func (unheard) Acknowledged(providers.Acknowledgement) {}
func (unheard) Progress()                              {}
func (unheard) Unknown(providers.Failure)              {}

// listener notes the handle on its way to the attempt's reporter.
type listener struct {
	providers.Reporter
	handle string
}

func (l *listener) Acknowledged(a providers.Acknowledgement) {
	l.handle = a.Handle
	l.Reporter.Acknowledged(a)
}
