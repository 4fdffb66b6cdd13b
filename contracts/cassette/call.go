package cassette

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"gopkg.in/dnaeon/go-vcr.v4/pkg/recorder"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/providers"
)

// nowhere is the host of requests that stand for calls. RFC 2606 keeps its domain from ever existing.
const nowhere = "http://docket.invalid/send/"

// overCalls records the calls of an adapter that makes no HTTP requests.
func (w *wire) overCalls(options []recorder.Option) error {
	adapter := w.endpoint.Target.Sender
	var err error
	if w.recorder, err = recorder.New(w.name, append(options, recorder.WithRealTransport(through(func(r *http.Request) (*http.Response, error) {
		return perform(adapter, r)
	})))...); err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	w.endpoint.Target.Sender = caller{adapter, w}
	w.stop = func() error { return nil }
	return nil
}

// callRequest is a call's body. It leaves out what is another each time: the attempt's id and the trace context.
type callRequest struct {
	Task            string          `json:"task"`
	Model           string          `json:"model"`
	System          string          `json:"system"`
	Prompt          string          `json:"prompt"`
	Input           json.RawMessage `json:"input"`
	Schema          json.RawMessage `json:"schema"`
	Temperature     float64         `json:"temperature"`
	MaxOutputTokens int             `json:"max_output_tokens"`
}

// callResponse is what came of a call, and what was reported of it before.
type callResponse struct {
	Acknowledged *acknowledgement `json:"acknowledged,omitempty"`
	Progress     int              `json:"progress,omitempty"` // signs of life
	Unknown      *failure         `json:"unknown,omitempty"`

	Ended        string   `json:"ended"` // of words
	Output       string   `json:"output,omitempty"`
	Failure      *failure `json:"failure,omitempty"`
	Usage        *usage   `json:"usage,omitempty"`
	RequestID    string   `json:"request_id,omitempty"`
	FinishReason string   `json:"finish_reason,omitempty"`
}

var words = map[providers.OutcomeKind]string{providers.Completed: "completed", providers.Failed: "failed", providers.Unknown: "unknown"}

// These are providers' own types with names for a file.
type (
	acknowledgement struct {
		ProviderRequestID string `json:"request_id,omitempty"`
		Handle            string `json:"handle,omitempty"`
	}
	failure struct {
		Code       string        `json:"code"`
		Message    string        `json:"message"`
		Retryable  bool          `json:"retryable,omitempty"`
		RetryAfter time.Duration `json:"retry_after_ns,omitempty"`
	}
	usage struct {
		InputTokens       *int `json:"input_tokens,omitempty"`
		CachedInputTokens *int `json:"cached_input_tokens,omitempty"`
		OutputTokens      *int `json:"output_tokens,omitempty"`
	}
)

// outcome is how the call ended; ok is false if the recording does not say.
func (c callResponse) outcome() (out providers.Outcome, ok bool) {
	for kind, word := range words {
		if word == c.Ended {
			out.Kind, ok = kind, true
		}
	}
	if out.Kind == providers.Completed {
		out.Output = []byte(c.Output)
	}
	out.Failure, out.Usage = (*providers.Failure)(c.Failure), (*providers.Usage)(c.Usage)
	out.ProviderRequestID, out.FinishReason = c.RequestID, c.FinishReason
	return out, ok
}

// caller calls the adapter by way of the recorder.
type caller struct {
	providers.Provider

	wire *wire
}

// Send implements providers.Provider.
func (c caller) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	w := c.wire
	if w.tape == nil && w.failed() {
		return notSent()
	}
	out, took, err := c.send(ctx, req, r)
	w.mu.Lock()
	w.note(req.AttemptID, took)
	w.mu.Unlock()
	if err != nil {
		return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{Code: providers.CodeAdapter, Message: "the cassette failed: " + err.Error()}}
	}
	return out
}

// call is what the transport needs and a request does not carry.
type call struct {
	ctx context.Context //nolint:containedctx // of the caller: the recorder would take its end for the answer's
	req providers.Request
	r   providers.Reporter
}

type callKey struct{}

func (c caller) send(ctx context.Context, req providers.Request, r providers.Reporter) (out providers.Outcome, took time.Duration, err error) {
	w := c.wire
	body, err := json.Marshal(callRequest{req.Task, req.Model, req.System, req.Prompt, req.Input, req.Schema, req.Temperature, req.MaxOutputTokens})
	if err != nil {
		return out, 0, err
	}
	within := context.WithValue(context.WithoutCancel(ctx), callKey{}, &call{ctx, req, r})
	hr, err := http.NewRequestWithContext(within, http.MethodPost, nowhere+w.endpoint.Target.Config.Kind+"/"+url.PathEscape(req.Model), bytes.NewReader(body))
	if err != nil {
		return out, 0, err
	}
	hr.Header.Set("Content-Type", "application/json")
	step := contracts.StepOf(ctx)
	if step != "" {
		hr.Header.Set(stepHeader, step)
	}
	w.mu.Lock()
	w.runs = max(w.runs, number(step))
	w.mu.Unlock()
	resp, err := w.recorder.RoundTrip(hr)
	if err != nil {
		w.noAnswer(hr, err)
		return out, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if took, err = time.ParseDuration(resp.Header.Get(tookHeader)); err != nil {
		return out, 0, err
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return out, 0, err
	}
	var got callResponse
	err = json.Unmarshal(raw, &got)
	out, ok := got.outcome()
	if err != nil || !ok {
		err = fmt.Errorf("%w: %s: %s: what came of the call is not there", ErrBroken, w.name, step)
		w.fail(err)
		return out, 0, err
	}
	if w.tape != nil {
		got.tell(r)
	}
	return out, took, nil
}

// tell reports what was reported while recording.
func (c callResponse) tell(r providers.Reporter) {
	if c.Acknowledged != nil {
		r.Acknowledged(providers.Acknowledgement(*c.Acknowledged))
	}
	for range c.Progress {
		r.Progress()
	}
	if c.Unknown != nil {
		r.Unknown(providers.Failure(*c.Unknown))
	}
}

// perform makes the call that a request stands for.
func perform(p providers.Provider, hr *http.Request) (*http.Response, error) {
	c, ok := hr.Context().Value(callKey{}).(*call)
	if !ok {
		return nil, errors.New("a request that stands for no call")
	}
	// The recorder keeps what is read.
	if _, err := io.Copy(io.Discard, hr.Body); err != nil {
		return nil, err
	}
	heard := &listener{Reporter: c.r}
	out := p.Send(c.ctx, c.req, heard) //nolint:contextcheck // see call
	if !utf8.Valid(out.Output) {
		return nil, errors.New("its output is not UTF-8, so it cannot be written down")
	}
	said := heard.said
	said.Ended, said.Output, said.Failure, said.Usage = words[out.Kind], string(out.Output), (*failure)(out.Failure), (*usage)(out.Usage)
	said.RequestID, said.FinishReason = out.ProviderRequestID, out.FinishReason
	raw, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: hr,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)),
	}, nil
}

// listener keeps what it passes on.
type listener struct {
	providers.Reporter

	said callResponse
}

// Acknowledged implements providers.Reporter.
func (l *listener) Acknowledged(a providers.Acknowledgement) {
	l.said.Acknowledged = new(acknowledgement(a))
	l.Reporter.Acknowledged(a)
}

// AcknowledgedLate implements providers.LateReporter. It is not kept: nobody can be asked in a replay.
func (l *listener) AcknowledgedLate(a providers.Acknowledgement) {
	providers.AcknowledgeLate(l.Reporter, a)
}

// Progress implements providers.Reporter.
func (l *listener) Progress() {
	l.said.Progress++
	l.Reporter.Progress()
}

// Unknown implements providers.Reporter.
func (l *listener) Unknown(f providers.Failure) {
	l.said.Unknown = new(failure(f))
	l.Reporter.Unknown(f)
}
