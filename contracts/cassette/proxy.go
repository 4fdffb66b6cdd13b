package cassette

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	vcr "gopkg.in/dnaeon/go-vcr.v4/pkg/cassette"
	"gopkg.in/dnaeon/go-vcr.v4/pkg/recorder"

	"github.com/docket-gateway/docket/contracts"
	"github.com/docket-gateway/docket/providers"
)

const (
	// replayKey is sent where no key is configured and nobody looks at it. It is too short to be looked for in answers.
	replayKey = "replay"
	// margin is how much longer the adapter waits than the wire, so that the wire is the one that gives up.
	margin = 30 * time.Second
	// stopFor bounds how long requests may still go on when the wire is closed.
	stopFor = 5 * time.Second
)

// asked is a request of an attempt.
type asked struct {
	attempt     string
	step        string
	traceparent string
	answered    bool
}

// overHTTP puts a server on loopback between the adapter and the recorder. Answers are served whole, so the adapter waits for them as
// long as for a whole one; the endpoint is held to its own time-outs by upstream.
func (w *wire) overHTTP(ctx context.Context, options []recorder.Option) error {
	cfg := w.endpoint.Target.Config
	endpoint, err := url.Parse(cfg.BaseURL)
	if err != nil {
		return errors.New("the provider's base_url is not a URL") // the parse error would quote it
	}
	up := newUpstream(cfg)
	if w.recorder, err = recorder.New(w.name, append(options, recorder.WithRealTransport(up))...); err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	w.requests = map[string]*asked{}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen on loopback: %w", err)
	}
	// Nobody else on this machine can guess the path, so what comes was sent by our adapter.
	private := "/" + rand.Text()
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server := &http.Server{ReadHeaderTimeout: margin, ErrorLog: quiet, Handler: http.StripPrefix(private, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = endpoint.Scheme, endpoint.Host, ""
			r.Out.RequestURI, r.Out.RemoteAddr = "", ""
			r.Out.Header.Del("Accept-Encoding") // net/http's own, of tokenizers
		},
		Transport: through(w.roundTrip), ErrorLog: quiet,
		// The adapter's outcome does not count: Close returns the error.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends by Shutdown or Close
	}()
	w.stop = func() error {
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopFor)
		defer cancel()
		err := server.Shutdown(bound)
		if err != nil {
			err = fmt.Errorf("%s: requests did not end: %w", w.name, errors.Join(err, server.Close()))
		}
		<-served
		up.close()
		return err
	}
	target, err := w.registry.With(w.target, func(c *providers.Config) {
		c.BaseURL, c.ProxyFromEnvironment = "http://"+listener.Addr().String()+private+endpoint.EscapedPath(), false
		c.AckTimeout, c.IdleTimeout, c.TotalTimeout = cfg.TotalTimeout+margin, cfg.TotalTimeout+margin, cfg.TotalTimeout+margin
		if w.tape != nil {
			c.APIKey = replayKey
		}
	})
	if err != nil {
		return errors.Join(err, w.stop())
	}
	s := sender{target.Sender, w}
	if r, ok := target.Sender.(providers.Retriever); ok {
		target.Sender = retrievingSender{s, r}
	} else {
		target.Sender = s
	}
	w.endpoint.Target = target
	return nil
}

type through func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f through) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// roundTrip gets one answer from the recorder and tells its time to the attempt that asked.
func (w *wire) roundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	q := w.requests[r.Header.Get("Traceparent")]
	w.mu.Unlock()
	r.Header.Del(stepHeader)
	if q != nil {
		r.Header.Del("Traceparent")
		if q.traceparent != "" {
			r.Header.Set("Traceparent", q.traceparent)
		}
		if q.step != "" {
			r.Header.Set(stepHeader, q.step)
		}
	}
	resp, err := w.recorder.RoundTrip(r)
	if err != nil {
		w.noAnswer(r, err)
		return nil, err
	}
	took, err := time.ParseDuration(resp.Header.Get(tookHeader))
	resp.Header.Del(tookHeader)
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if q != nil {
		q.answered = true
		w.note(q.attempt, took)
	}
	return resp, nil
}

// note keeps the time of an attempt's first answer. w.mu is held.
func (w *wire) note(attempt string, took time.Duration) {
	if _, ok := w.took[attempt]; !ok && attempt != "" {
		w.took[attempt] = took
	}
}

// noAnswer keeps why a request has none. What an interruption ended says nothing.
func (w *wire) noAnswer(r *http.Request, err error) {
	switch {
	case w.ended():
	case errors.Is(err, vcr.ErrInteractionNotFound):
		w.fail(fmt.Errorf("%w: %s: %s; %s", ErrNotOnIt, w.name, w.tape.absent(r), w.again()))
	case w.tape != nil:
		w.fail(fmt.Errorf("%s: %s: %w", w.name, r.URL.EscapedPath(), err))
	default:
		w.fail(fmt.Errorf("%w: %s: %s %s: no whole answer came, so there is none to record: %s; see what becomes of it with --mode live",
			ErrNotRecorded, w.name, r.Header.Get(stepHeader), r.URL.EscapedPath(), w.registry.Redact(w.target, err.Error())))
	}
}

// begin notes a request that is about to be made, and gives it a trace context that only it has: all adapters send that along,
// so that the server knows whose request it got.
func (w *wire) begin(ctx context.Context, attempt string, traceparent *string) (q *asked, end func()) {
	q = &asked{attempt: attempt, step: contracts.StepOf(ctx), traceparent: *traceparent}
	var id [24]byte
	_, _ = rand.Read(id[:]) // never fails
	mark := "00-" + hex.EncodeToString(id[:16]) + "-" + hex.EncodeToString(id[16:]) + "-01"
	*traceparent = mark
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests[mark] = q
	w.runs = max(w.runs, number(q.step))
	return q, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.requests, mark)
	}
}

// sender sends over the wire.
type sender struct {
	providers.Provider

	wire *wire
}

// Send implements providers.Provider.
func (s sender) Send(ctx context.Context, req providers.Request, r providers.Reporter) providers.Outcome {
	w := s.wire
	if w.tape == nil && w.failed() {
		return notSent()
	}
	q, end := w.begin(ctx, req.AttemptID, &req.Traceparent)
	defer end()
	out := s.Provider.Send(ctx, req, r)
	w.mu.Lock()
	answered := q.answered
	w.mu.Unlock()
	switch {
	case out.Failure != nil && out.Failure.Code == providers.CodeSecretEchoed:
		// It may stand there in pieces, which nobody would find in the file.
		w.fail(fmt.Errorf("%w: %s: an answer holds the provider's key", ErrNotRecorded, w.name))
	case out.Kind == providers.Completed && !answered:
		w.fail(fmt.Errorf("%w: %s: the kind %s got an answer by another way than its base_url", ErrNotRecorded, w.name, w.endpoint.Target.Config.Kind))
	}
	return out
}

// notSent is the outcome of a request of a case that cannot be recorded any more: it would be paid for in vain.
func notSent() providers.Outcome {
	return providers.Outcome{Kind: providers.Failed, Failure: &providers.Failure{Code: providers.CodeNotSent, Message: "the case's recording failed before"}}
}

type retrievingSender struct {
	sender
	providers.Retriever
}
